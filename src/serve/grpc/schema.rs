//! The messages and methods of gRPC, from the table of operations. Pure.
//!
//! Each operation is a method. Its message has the values of the path and of the query as fields, and a body as an object
//! of JSON. Numbers of fields follow from the table, where parameters may only be added behind the others.

use std::fmt::Write as _;

use prost_reflect::{DescriptorError, DescriptorPool, MessageDescriptor};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, OneofDescriptorProto, ServiceDescriptorProto,
};

use crate::serve::operation::{ALL, Access, Gives, Id, Operation, Sort};

/// The name of the service.
pub(super) const SERVICE: &str = "agents.v1.ControlPlane";

const FILE: &str = "agents/v1/control_plane.proto";
const PACKAGE: &str = "agents.v1";
const JSON_FILE: &str = "google/protobuf/struct.proto";
const JSON: &str = "google.protobuf.Struct";

/// What is sent of a log, and of a stream of events.
const PIECE: &str = "Piece";
const EVENT: &str = "Event";

/// The first number of a value of the query.
const FIRST: i32 = 10;

/// Names of fields that are in no query.
pub(super) mod field {
    pub(in crate::serve::grpc) const NAMESPACE: &str = "namespace";
    pub(in crate::serve::grpc) const NAME: &str = "name";
    pub(in crate::serve::grpc) const BODY: &str = "body";
    pub(in crate::serve::grpc) const KEY: &str = "idempotency_key";
    pub(in crate::serve::grpc) const LAST: &str = "last_event_id";
    pub(in crate::serve::grpc) const DATA: &str = "data";
    pub(in crate::serve::grpc) const EVENT: &str = "event";
    pub(in crate::serve::grpc) const ID: &str = "id";
}

/// All messages.
pub(super) struct Schema {
    pool: DescriptorPool,
}

impl Schema {
    pub(super) fn new() -> Result<Self, DescriptorError> {
        let mut pool = DescriptorPool::global();
        pool.add_file_descriptor_proto(file())?;
        Ok(Self { pool })
    }

    /// The files that describe it, for those who ask.
    pub(super) fn files(&self) -> FileDescriptorSet {
        let all = self.pool.file_descriptor_protos();
        let wanted = all.filter(|file| [FILE, JSON_FILE].contains(&file.name()));
        FileDescriptorSet {
            file: wanted.cloned().collect(),
        }
    }

    /// The operation of a method.
    pub(super) fn operation(&self, method: &str) -> Option<&'static Operation> {
        offered().find(|operation| self::method(operation) == method)
    }

    /// What a call of an operation sends.
    pub(super) fn request(&self, operation: &Operation) -> Option<MessageDescriptor> {
        let name = format!("{PACKAGE}.{}Request", method(operation));
        self.pool.get_message_by_name(&name)
    }

    /// Any JSON object.
    pub(super) fn json(&self) -> Option<MessageDescriptor> {
        self.pool.get_message_by_name(JSON)
    }

    pub(super) fn piece(&self) -> Option<MessageDescriptor> {
        self.pool.get_message_by_name(&format!("{PACKAGE}.{PIECE}"))
    }

    pub(super) fn event(&self) -> Option<MessageDescriptor> {
        self.pool.get_message_by_name(&format!("{PACKAGE}.{EVENT}"))
    }
}

/// The operations that there are over gRPC: health has a service of its own, and so has what describes all this.
pub(super) fn offered() -> impl Iterator<Item = &'static Operation> {
    ALL.iter().filter(|operation| {
        !matches!(operation.access, Access::Open | Access::Signed) && operation.id != Id::OpenApi
    })
}

fn method(operation: &Operation) -> String {
    let name = operation.id.as_str();
    let (first, rest) = name.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}", first.to_uppercase())
}

/// A name of the query as fields are written.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn file() -> FileDescriptorProto {
    let mut messages = vec![
        message(PIECE, vec![scalar(field::DATA, 1, Type::Bytes)]),
        message(
            EVENT,
            vec![
                scalar(field::ID, 1, Type::String),
                scalar(field::EVENT, 2, Type::String),
                object(field::DATA, 3),
            ],
        ),
    ];
    messages.extend(offered().map(request));
    FileDescriptorProto {
        name: Some(FILE.to_owned()),
        package: Some(PACKAGE.to_owned()),
        dependency: vec![JSON_FILE.to_owned()],
        message_type: messages,
        service: vec![ServiceDescriptorProto {
            name: SERVICE.rsplit('.').next().map(str::to_owned),
            method: offered().map(described).collect(),
            options: None,
        }],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn described(operation: &Operation) -> MethodDescriptorProto {
    let (output, is_stream) = match operation.gives {
        Gives::Json(_) | Gives::Any => (JSON.to_owned(), false),
        Gives::Text => (format!("{PACKAGE}.{PIECE}"), true),
        Gives::Events => (format!("{PACKAGE}.{EVENT}"), true),
    };
    MethodDescriptorProto {
        name: Some(method(operation)),
        input_type: Some(format!(".{PACKAGE}.{}Request", method(operation))),
        output_type: Some(format!(".{output}")),
        server_streaming: Some(is_stream),
        ..MethodDescriptorProto::default()
    }
}

fn request(operation: &Operation) -> DescriptorProto {
    let mut fields = Vec::new();
    if operation.is_namespaced() {
        fields.push(scalar(field::NAMESPACE, 1, Type::String));
    }
    if operation.path.contains("{name}") {
        fields.push(scalar(field::NAME, 2, Type::String));
    }
    if operation.takes.is_some() {
        fields.push(object(field::BODY, 3));
    }
    if operation.id == Id::SubmitRun {
        fields.push(scalar(field::KEY, 4, Type::String));
    }
    if matches!(operation.gives, Gives::Events) {
        fields.push(scalar(field::LAST, 5, Type::String));
    }
    let asked = operation.query.iter();
    let asked = asked.filter(|known| !matches!(known.sort, Sort::Namespace { .. }));
    for (number, known) in (FIRST..).zip(asked) {
        let sort = match known.sort {
            Sort::Text | Sort::Namespace { .. } | Sort::Time(_) => Type::String,
            Sort::Number(_) => Type::Uint32,
            Sort::Switch => Type::Bool,
        };
        fields.push(scalar(&snake(known.name), number, sort));
    }
    message(&format!("{}Request", method(operation)), fields)
}

/// A message. Switches are told apart from those that were left out.
fn message(name: &str, mut fields: Vec<FieldDescriptorProto>) -> DescriptorProto {
    let mut choices = Vec::new();
    for field in &mut fields {
        if field.r#type() == Type::Bool {
            field.proto3_optional = Some(true);
            field.oneof_index = i32::try_from(choices.len()).ok();
            choices.push(OneofDescriptorProto {
                name: Some(format!("_{}", field.name())),
                options: None,
            });
        }
    }
    DescriptorProto {
        name: Some(name.to_owned()),
        field: fields,
        oneof_decl: choices,
        ..DescriptorProto::default()
    }
}

fn scalar(name: &str, number: i32, sort: Type) -> FieldDescriptorProto {
    let mut field = FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        ..FieldDescriptorProto::default()
    };
    field.set_type(sort);
    field.set_label(Label::Optional);
    field
}

fn object(name: &str, number: i32) -> FieldDescriptorProto {
    FieldDescriptorProto {
        type_name: Some(format!(".{JSON}")),
        ..scalar(name, number, Type::Message)
    }
}

/// The same as a file, for those who make clients from one.
pub fn text() -> String {
    let file = file();
    let mut out = format!(
        "// Generated from the table of operations; `docs/api.md` says more.\nsyntax = \"proto3\";\n\npackage {PACKAGE};\n\nimport \"{JSON_FILE}\";\n"
    );
    for service in &file.service {
        let _ = write!(out, "\nservice {} {{\n", service.name());
        for (operation, method) in offered().zip(&service.method) {
            let bare = |name: &str| {
                let name = name.trim_start_matches('.');
                let own = format!("{PACKAGE}.");
                name.strip_prefix(&own).unwrap_or(name).to_owned()
            };
            let stream = if method.server_streaming() {
                "stream "
            } else {
                ""
            };
            let _ = writeln!(out, "  // {}", operation.about);
            let (takes, gives) = (bare(method.input_type()), bare(method.output_type()));
            let _ = writeln!(
                out,
                "  rpc {}({takes}) returns ({stream}{gives});",
                method.name()
            );
        }
        out.push_str("}\n");
    }
    for message in &file.message_type {
        let _ = write!(out, "\nmessage {} {{\n", message.name());
        for field in &message.field {
            let words = [
                (Type::Bool, "optional bool"),
                (Type::Bytes, "bytes"),
                (Type::Uint32, "uint32"),
                (Type::Message, JSON),
            ];
            let mut words = words.into_iter();
            let sort = words.find(|(sort, _)| *sort == field.r#type());
            let sort = sort.map_or("string", |(_, word)| word);
            let _ = writeln!(out, "  {sort} {} = {};", field.name(), field.number());
        }
        out.push_str("}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_method_with_its_values() {
        let schema = Schema::new().unwrap();
        let mut methods = 0;
        for operation in offered() {
            let method = method(operation);
            assert_eq!(
                schema.operation(&method).map(|found| found.id),
                Some(operation.id)
            );
            let request = schema.request(operation).unwrap();
            for known in operation.query {
                let field = request.get_field_by_name(&snake(known.name));
                assert!(field.is_some(), "{method} has no {}", known.name);
            }
            assert_eq!(
                request.get_field_by_name(field::NAMESPACE).is_some(),
                operation.is_namespaced(),
                "{method}"
            );
            methods += 1;
        }
        assert_eq!(
            methods + 6,
            ALL.len(),
            "all but health, the document and trackers"
        );
        assert!(schema.json().is_some() && schema.piece().is_some() && schema.event().is_some());
    }

    #[test]
    fn names_are_written_as_fields_are() {
        for (name, expected) in [("labelSelector", "label_selector"), ("limit", "limit")] {
            assert_eq!(snake(name), expected);
        }
    }
}
