//! Each door from review to response, as the API server sees it.

mod contract;
mod deletes;
mod histories;
mod review;
mod shadow;
mod specs;
mod statuses;
mod subject;
