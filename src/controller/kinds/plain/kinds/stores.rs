//! Stores of what agents remember: whether the Secret is there and, where the operator wants to know, whether the store is.

use super::Plain;
use crate::api::condition::Lifecycle;
use crate::api::kinds::agents::memory::MemoryType;
use crate::api::kinds::{Memory, MemoryStatus};
use crate::controller::driver::stand::Stand;
use crate::controller::kinds::plain::look::Outside;
use crate::controller::kinds::plain::plan::Around;

/// What a store is said to do, and the extension of PostgreSQL that it then needs.
const VECTORS: (&str, &str) = ("vector", "vector");

impl Plain for Memory {
    fn secrets(&self) -> Vec<&str> {
        let secret = &self.spec.connection.secret_ref;
        match entry(self) {
            Some(_) => Vec::new(),
            None => vec![&secret.name],
        }
    }

    fn secret_entries(&self) -> Vec<(String, String)> {
        let name = self.spec.connection.secret_ref.name.trim();
        let entry = entry(self).map(|key| (name.to_owned(), key.to_owned()));
        entry.into_iter().collect()
    }

    fn outside(&self) -> Option<Outside> {
        let (word, extension) = VECTORS;
        let mut able = self.spec.capabilities.iter().flatten();
        match self.spec.type_ {
            MemoryType::Postgres => Some(Outside::Store {
                secret: self.spec.connection.secret_ref.name.trim().to_owned(),
                entry: entry(self).map(str::to_owned),
                extension: able.any(|able| able.trim() == word).then_some(extension),
            }),
            MemoryType::Redis
            | MemoryType::Weaviate
            | MemoryType::Pinecone
            | MemoryType::Custom => None,
        }
    }

    fn stand(&self, around: &Around) -> Stand<MemoryStatus> {
        let reason = match around.is_reached {
            true => Lifecycle::Connected,
            false => Lifecycle::SecretResolved,
        };
        Stand {
            reason: reason.into(),
            ..self.valid()
        }
    }
}

/// The entry of the Secret that is named, if one is.
fn entry(memory: &Memory) -> Option<&str> {
    let key = memory.spec.connection.secret_ref.key.as_deref()?.trim();
    (!key.is_empty()).then_some(key)
}
