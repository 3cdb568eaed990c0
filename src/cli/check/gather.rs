//! From texts to objects: every document, entries of Lists one by one, sorted into ours, others' and what is neither.

use std::panic::resume_unwind;
use std::thread;

use serde_json::Value;

use super::document::{Node, Unreadable, documents};
use super::report::{Fault, Whose};
use super::source::Source;
use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::api::object::cause::{not_one_of, quoted};

/// Reading goes down some calls per level of a document; here is room for the deepest one, in every build.
const STACK: usize = 64 * 1024 * 1024;
/// Objects of everything together.
const OBJECTS: usize = 100_000;

/// An object of ours.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Which of the texts it is in.
    pub(crate) source: usize,
    /// Its kind.
    pub(crate) kind: Kind,
    /// Who it is.
    pub(crate) whose: Whose,
    /// The object with the places of its parts.
    pub(crate) node: Node,
    /// The object.
    pub(crate) value: Value,
}

/// What the texts hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Objects of ours, in the order of the texts.
    pub(crate) objects: Vec<Object>,
    /// Documents of kinds that are not ours.
    pub(crate) others: usize,
    /// What cannot be read, or calls itself ours and is not.
    pub(crate) faults: Vec<Fault>,
}

/// Everything that the texts hold. Objects that name no namespace are in this one.
pub(crate) fn gather(sources: &[Source], namespace: &str) -> Gathered {
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK);
        match reader.spawn_scoped(scope, || read_all(sources, namespace)) {
            Ok(reading) => reading.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => read_all(sources, namespace), // no thread to be had, and hardly a document that needs it
        }
    })
}

fn read_all(sources: &[Source], namespace: &str) -> Gathered {
    let mut gathered = Gathered::default();
    for (source, text) in sources.iter().enumerate() {
        for document in documents(&text.text) {
            match document {
                Ok(node) => gathered.take(source, node, namespace),
                Err(unreadable) => gathered.faults.push(not_read(source, unreadable)),
            }
        }
    }
    gathered
}

impl Gathered {
    fn take(&mut self, source: usize, node: Node, namespace: &str) {
        let api_version = node.text_of("apiVersion").unwrap_or_default().to_owned();
        let kind = node.text_of("kind").unwrap_or_default().to_owned();
        if kind.ends_with("List") && node.field("items").is_some() {
            let entries = node.into_field("items").and_then(Node::into_entries);
            for entry in entries.into_iter().flatten() {
                self.take(source, entry, namespace);
            }
            return;
        }
        let (group, version) = api_version.split_once('/').unwrap_or_default();
        if !Kind::ALL.iter().any(|known| known.group() == group) {
            self.others += 1;
            return;
        }
        let whose = whose(&node, &kind, namespace);
        match kind_of(group, version, &kind) {
            Ok(kind) if self.objects.len() < OBJECTS => {
                let value = node.value();
                self.objects.push(Object {
                    source,
                    kind,
                    whose,
                    node,
                    value,
                });
            }
            Ok(_) => {
                let message = format!("more than {OBJECTS} objects at once; check them in parts");
                self.faults
                    .push(fault(source, whose, &node, "kind", &message));
            }
            Err((field, message)) => {
                self.faults
                    .push(fault(source, whose, &node, field, &message));
            }
        }
    }
}

/// The kind of an object in one of our groups, or the field that names none and why.
fn kind_of(group: &str, version: &str, kind: &str) -> Result<Kind, (&'static str, String)> {
    let kinds = Kind::ALL.into_iter().filter(|known| known.group() == group);
    let kinds: Vec<Kind> = kinds.collect();
    let Some(found) = kinds.iter().find(|known| known.as_str() == kind) else {
        let words: Vec<&str> = kinds.iter().map(|known| known.as_str()).collect();
        return Err(("kind", not_one_of(kind, &words)));
    };
    if version != VERSION {
        let version = quoted(version);
        let message = format!("there is no version {version}; write {group}/{VERSION}");
        return Err(("apiVersion", message));
    }
    Ok(*found)
}

fn fault(source: usize, whose: Whose, node: &Node, field: &str, message: &str) -> Fault {
    Fault {
        source,
        whose: Some(whose),
        place: node.field(field).map_or(node.place, |value| value.place),
        reason: UNKNOWN_KIND,
        message: format!("{field}: {message}"),
    }
}

/// The word for an object that calls itself ours and is not.
pub(crate) const UNKNOWN_KIND: &str = "UnknownKind";
/// The word for a document that cannot be read.
pub(crate) const UNREADABLE: &str = "Unreadable";

fn whose(node: &Node, kind: &str, namespace: &str) -> Whose {
    let metadata = node.field("metadata");
    let text = |field: &str| metadata.and_then(|metadata| metadata.text_of(field));
    let made_up = || text("generateName").map(|start| format!("{start}*"));
    Whose {
        kind: kind.to_owned(),
        namespace: text("namespace").unwrap_or(namespace).to_owned(),
        name: text("name").map(str::to_owned).or_else(made_up),
    }
}

fn not_read(source: usize, Unreadable { place, message }: Unreadable) -> Fault {
    Fault {
        source,
        whose: None,
        place,
        reason: UNREADABLE,
        message: format!("cannot be read: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(text: &str) -> Gathered {
        let source = Source {
            name: "a.yaml".to_owned(),
            text: text.to_owned(),
        };
        gather(&[source], "default")
    }

    #[test]
    fn lists_are_taken_apart_and_others_are_counted() {
        let found = gathered(
            "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
- apiVersion: tools.proompteng.ai/v1alpha1
  kind: ToolList
  items:
  - {apiVersion: tools.proompteng.ai/v1alpha1, kind: Tool, metadata: {name: a, namespace: team}}
  - {apiVersion: tools.proompteng.ai/v1alpha1, kind: Tool, metadata: {generateName: b-}}
---
just: a text
---
- a list
",
        );
        let names: Vec<String> = found
            .objects
            .iter()
            .map(|it| it.whose.to_string())
            .collect();
        assert_eq!(names, ["Tool team/a", "Tool default/b-*"]);
        assert_eq!((found.others, found.faults.len()), (3, 0));
        assert_eq!(found.objects[0].node.place.line, 9);
    }

    #[test]
    fn what_calls_itself_ours_and_is_not_is_a_fault() {
        let found = gathered(
            "
apiVersion: agents.proompteng.ai/v1alpha1
kind: AgentRum
metadata: {name: a}
---
apiVersion: agents.proompteng.ai/v2
kind: AgentRun
metadata: {name: b}
",
        );
        let told: Vec<(usize, &str)> = found
            .faults
            .iter()
            .map(|fault| (fault.place.line, &*fault.message))
            .collect();
        assert_eq!(told[0].0, 3);
        assert!(told[0].1.contains("did you mean \"AgentRun\""), "{told:?}");
        let other = "apiVersion: there is no version \"v2\"; write agents.proompteng.ai/v1alpha1";
        assert_eq!(told[1], (6, other));
        assert!(found.objects.is_empty());
    }

    #[test]
    fn hostile_documents_are_refused_in_time() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let deep_block: String = (0..3000).map(|level| " ".repeat(level) + "a:\n").collect();
        let mut laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, before) in [
            ('b', 'a'),
            ('c', 'b'),
            ('d', 'c'),
            ('e', 'd'),
            ('f', 'e'),
            ('g', 'f'),
        ] {
            let many = vec![format!("*{before}"); 10].join(",");
            laughs += &format!("{name}: &{name} [{many}]\n");
        }
        for (row, text) in [
            ("deep", deep),
            ("deep block", deep_block),
            ("aliases", laughs),
        ] {
            let found = gathered(&text);
            assert_eq!(found.faults.len(), 1, "{row} was read");
        }
    }
}
