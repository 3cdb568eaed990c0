//! What operators can set about what comes in.

use std::{net::SocketAddr, time::Duration};

use agents::{
    api::contract::port,
    kit::config::{Invalid, Reader},
};
