//! Each door from review to response, as the API server sees it.

mod deletes;
mod histories;
mod specs;
mod statuses;
