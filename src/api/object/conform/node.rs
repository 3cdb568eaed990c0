//! A schema in the form that a walk needs: what a value must be, and nothing else.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use regex::Regex;

use super::format::Format;
use crate::api::crd::Rule;

/// The schema of a kind.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) spec: Node,
    pub(super) status: Node,
    /// Whether an object without spec is refused.
    pub(super) needs_spec: bool,
    /// Rules about a change of the status.
    pub(super) rules: Vec<Rule>,
}

/// What one value must be.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) shape: Shape,
    /// What the value means, for people.
    pub(super) about: String,
}

/// What sort of value, and its limits.
#[derive(Debug, Default)]
pub(super) enum Shape {
    /// Anything.
    #[default]
    Any,
    Object(Fields),
    List(List),
    Text(Text),
    Integer(Range),
    Number(Range),
    Boolean,
    IntOrText,
}

/// An object: named fields, and entries with free names if it has a schema for them.
#[derive(Debug)]
pub(super) struct Fields {
    /// Sorted by name.
    pub(super) named: Vec<Field>,
    pub(super) entries: Option<Box<Node>>,
    pub(super) most: Option<usize>,
    pub(super) rules: Vec<Rule>,
}

/// A named field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) node: Node,
    pub(super) required: bool,
}

/// A list.
#[derive(Debug)]
pub(super) struct List {
    pub(super) items: Box<Node>,
    pub(super) most: Option<usize>,
    /// Fields that tell one entry from another, where entries are told apart.
    pub(super) keys: Vec<String>,
}

/// A text.
#[derive(Debug)]
pub(super) struct Text {
    /// The only allowed texts, if there are such.
    pub(super) words: Vec<String>,
    pub(super) least: Option<usize>,
    pub(super) most: Option<usize>,
    pub(super) pattern: Option<Regex>,
    pub(super) format: Option<Format>,
}

/// Smallest and greatest number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
}

impl Tree {
    /// Reads the schema out of a definition, which has one version.
    pub(super) fn of(definition: CustomResourceDefinition) -> Self {
        let mut versions = definition.spec.versions.into_iter();
        let mut root = versions
            .find_map(|version| version.schema?.open_api_v3_schema)
            .unwrap_or_default();
        let mut part = |name: &str| {
            let part = root.properties.as_mut().and_then(|all| all.remove(name));
            part.map(Node::of).unwrap_or_default()
        };
        let (spec, status) = (part("spec"), part("status"));
        let required = root.required.unwrap_or_default();
        Self {
            spec,
            status,
            needs_spec: required.iter().any(|name| name == "spec"),
            rules: rules(root.x_kubernetes_validations),
        }
    }
}

impl Node {
    /// Reads one schema. A field with a default counts as given: the API server fills it in.
    pub(super) fn of(schema: JSONSchemaProps) -> Self {
        let about = schema.description.clone().unwrap_or_default();
        Self {
            shape: Shape::of(schema),
            about,
        }
    }
}

impl Shape {
    fn of(schema: JSONSchemaProps) -> Self {
        if schema.x_kubernetes_int_or_string == Some(true) {
            return Self::IntOrText;
        }
        let range = Range {
            least: schema.minimum,
            most: schema.maximum,
        };
        match schema.type_.as_deref().unwrap_or_default() {
            "object" => Self::Object(Fields::of(schema)),
            "array" => Self::List(List::of(schema)),
            "string" => Self::Text(Text::of(schema)),
            "integer" => Self::Integer(range),
            "number" => Self::Number(range),
            "boolean" => Self::Boolean,
            _ => Self::Any,
        }
    }
}

impl Fields {
    fn of(schema: JSONSchemaProps) -> Self {
        let required = schema.required.unwrap_or_default();
        let entries = match schema.additional_properties {
            Some(JSONSchemaPropsOrBool::Schema(values)) => Some(Box::new(Node::of(*values))),
            Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
        };
        let fields = schema.properties.unwrap_or_default().into_iter();
        let named = fields.map(|(name, schema)| Field {
            required: schema.default.is_none() && required.contains(&name),
            node: Node::of(schema),
            name,
        });
        Self {
            named: named.collect(),
            entries,
            most: size(schema.max_properties),
            rules: rules(schema.x_kubernetes_validations),
        }
    }

    /// The field of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Field> {
        let place = (self.named).binary_search_by(|field| field.name.as_str().cmp(name));
        self.named.get(place.ok()?)
    }
}

impl List {
    fn of(schema: JSONSchemaProps) -> Self {
        let items = match schema.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => Node::of(*items),
            Some(JSONSchemaPropsOrArray::Schemas(_)) | None => Node::default(),
        };
        Self {
            items: Box::new(items),
            most: size(schema.max_items),
            keys: schema.x_kubernetes_list_map_keys.unwrap_or_default(),
        }
    }
}

impl Text {
    fn of(schema: JSONSchemaProps) -> Self {
        let words = schema.enum_.unwrap_or_default().into_iter();
        Self {
            words: words
                .filter_map(|word| word.0.as_str().map(str::to_owned))
                .collect(),
            least: size(schema.min_length),
            most: size(schema.max_length),
            pattern: schema.pattern.and_then(|text| Regex::new(&text).ok()),
            format: schema.format.as_deref().and_then(Format::of),
        }
    }
}

fn size(limit: Option<i64>) -> Option<usize> {
    usize::try_from(limit?).ok()
}

/// The rules of a schema. A test holds that each is known.
fn rules(rules: Option<Vec<ValidationRule>>) -> Vec<Rule> {
    let known = |text: &str| Rule::ALL.into_iter().find(|rule| rule.cel() == text);
    let rules = rules.unwrap_or_default().into_iter();
    rules.filter_map(|rule| known(&rule.rule)).collect()
}
