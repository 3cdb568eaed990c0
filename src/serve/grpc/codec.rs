//! Reads and writes messages whose fields are known by the schema.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::schema::Schema;
use crate::serve::operation::Operation;

/// The messages of one operation.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    request: MessageDescriptor,
}

impl Messages {
    pub(super) fn of(schema: &Schema, operation: &Operation) -> Option<Self> {
        let request = schema.request(operation)?;
        Some(Self { request })
    }
}

impl Codec for Messages {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Written;
    type Decoder = Self;

    fn encoder(&mut self) -> Written {
        Written
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Decoder for Messages {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let read = DynamicMessage::decode(self.request.clone(), source);
        let read = read.map_err(|_| Status::invalid_argument("the message cannot be read"))?;
        Ok(Some(read))
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written;

impl Encoder for Written {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let written = message.encode(out);
        written.map_err(|_| Status::internal("the answer does not fit into a message"))
    }
}
