//! Reviews as API servers write them, read without a detour. What is unusual is left to the derived reader.

use agents::api::contract::annotation;
use agents::api::tree::Cursor;

use super::{
    Annotations, GroupKind, GroupResource, Labels, Metadata, Object, Owner, Request, Review, Text,
    User,
};

pub(super) fn read(text: &str) -> Option<Review<'_>> {
    let mut cursor = Cursor::new(text);
    let (mut api_version, mut kind, mut asked) = (None, None, None);
    cursor.fields(|cursor, name| match name {
        "apiVersion" => once(&mut api_version, words(cursor)),
        "kind" => once(&mut kind, words(cursor)),
        "request" => once(&mut asked, request(cursor)),
        _ => cursor.skip().map(drop),
    })?;
    let review = Review {
        api_version: api_version?,
        kind: kind?,
        request: asked?,
    };
    cursor.is_at_end().then_some(review)
}

fn request<'a>(cursor: &mut Cursor<'a>) -> Option<Request<'a>> {
    let (mut uid, mut kind, mut resource, mut sub_resource) = (None, None, None, None);
    let (mut name, mut namespace, mut operation, mut user_info) = (None, None, None, None);
    let (mut object, mut old_object, mut dry_run) = (None, None, None);
    cursor.fields(|cursor, field| match field {
        "uid" => once(&mut uid, words(cursor)),
        "kind" => once(&mut kind, group_kind(cursor)),
        "resource" => once(&mut resource, group_resource(cursor)),
        "subResource" => once(&mut sub_resource, words(cursor)),
        "name" => once(&mut name, words(cursor)),
        "namespace" => once(&mut namespace, words(cursor)),
        "operation" => once(&mut operation, words(cursor)),
        "userInfo" => once(&mut user_info, user(cursor)),
        "object" => once(&mut object, cursor.unless_null(self::object)),
        "oldObject" => once(&mut old_object, cursor.unless_null(self::object)),
        "dryRun" => once(&mut dry_run, cursor.unless_null(Cursor::truth)),
        _ => cursor.skip().map(drop),
    })?;
    Some(Request {
        uid: uid?,
        kind: kind?,
        resource: resource?,
        sub_resource: sub_resource.unwrap_or_default(),
        name: name.unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        operation: operation?,
        user_info: user_info.unwrap_or_default(),
        object: object.flatten(),
        old_object: old_object.flatten(),
        dry_run: dry_run.flatten(),
    })
}

fn group_kind<'a>(cursor: &mut Cursor<'a>) -> Option<GroupKind<'a>> {
    let (group, version, kind) = group_version(cursor, "kind")?;
    Some(GroupKind {
        group,
        version,
        kind,
    })
}

fn group_resource<'a>(cursor: &mut Cursor<'a>) -> Option<GroupResource<'a>> {
    let (group, version, resource) = group_version(cursor, "resource")?;
    Some(GroupResource {
        group,
        version,
        resource,
    })
}

/// Group, version and the third part, which is called so.
fn group_version<'a>(
    cursor: &mut Cursor<'a>,
    third: &str,
) -> Option<(Text<'a>, Text<'a>, Text<'a>)> {
    let (mut group, mut version, mut rest) = (None, None, None);
    cursor.fields(|cursor, name| match name {
        "group" => once(&mut group, words(cursor)),
        "version" => once(&mut version, words(cursor)),
        name if name == third => once(&mut rest, words(cursor)),
        _ => cursor.skip().map(drop),
    })?;
    Some((group.unwrap_or_default(), version?, rest?))
}

fn user<'a>(cursor: &mut Cursor<'a>) -> Option<User<'a>> {
    let (mut username, mut groups) = (None, None);
    cursor.fields(|cursor, name| match name {
        "username" => once(&mut username, words(cursor)),
        "groups" => once(
            &mut groups,
            cursor.unless_null(|cursor| each(cursor, words)),
        ),
        _ => cursor.skip().map(drop),
    })?;
    Some(User {
        username: username.unwrap_or_default(),
        groups: groups.flatten(),
    })
}

fn object<'a>(cursor: &mut Cursor<'a>) -> Option<Object<'a>> {
    let (mut api_version, mut kind, mut who) = (None, None, None);
    let (mut spec, mut status) = (None, None);
    cursor.fields(|cursor, name| match name {
        "apiVersion" => once(&mut api_version, words(cursor)),
        "kind" => once(&mut kind, words(cursor)),
        "metadata" => once(&mut who, metadata(cursor)),
        "spec" => once(&mut spec, cursor.unless_null(Cursor::skip)),
        "status" => once(&mut status, cursor.unless_null(Cursor::skip)),
        _ => cursor.skip().map(drop),
    })?;
    Some(Object {
        api_version: api_version.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        metadata: who.unwrap_or_default(),
        spec: spec.flatten(),
        status: status.flatten(),
    })
}

fn metadata<'a>(cursor: &mut Cursor<'a>) -> Option<Metadata<'a>> {
    let (mut name, mut generate_name, mut namespace, mut uid) = (None, None, None, None);
    let (mut generation, mut labels) = (None, None);
    let (mut annotations, mut owner_references) = (None, None);
    cursor.fields(|cursor, field| match field {
        "name" => once(&mut name, words(cursor)),
        "generateName" => once(&mut generate_name, words(cursor)),
        "namespace" => once(&mut namespace, words(cursor)),
        "uid" => once(&mut uid, words(cursor)),
        "generation" => once(&mut generation, cursor.unless_null(Cursor::whole)),
        "labels" => once(&mut labels, cursor.unless_null(self::labels)),
        "annotations" => once(&mut annotations, cursor.unless_null(ours)),
        "ownerReferences" => once(
            &mut owner_references,
            cursor.unless_null(|cursor| each(cursor, owner)),
        ),
        _ => cursor.skip().map(drop),
    })?;
    Some(Metadata {
        name: name.unwrap_or_default(),
        generate_name: generate_name.unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        uid: uid.unwrap_or_default(),
        generation: generation.flatten(),
        labels: labels.flatten(),
        annotations: annotations.flatten(),
        owner_references: owner_references.flatten(),
    })
}

fn labels<'a>(cursor: &mut Cursor<'a>) -> Option<Labels<'a>> {
    let mut labels = Labels::default();
    cursor.fields(|cursor, key| {
        let value = cursor.plain()?;
        labels.push(key, value).then_some(())
    })?;
    Some(labels)
}

fn ours<'a>(cursor: &mut Cursor<'a>) -> Option<Annotations<'a>> {
    let (mut traceparent, mut stamped, mut outcome_recorded) = (None, None, false);
    cursor.fields(|cursor, key| match key {
        annotation::TRACEPARENT => once(&mut traceparent, words(cursor)),
        annotation::TRACEPARENT_STAMPED => once(&mut stamped, words(cursor)),
        annotation::OUTCOME_RECORDED => {
            outcome_recorded = true;
            cursor.skip().map(drop)
        }
        _ => cursor.skip().map(drop),
    })?;
    Some(Annotations {
        traceparent,
        stamped,
        outcome_recorded,
    })
}

fn owner<'a>(cursor: &mut Cursor<'a>) -> Option<Owner<'a>> {
    let (mut api_version, mut kind, mut name, mut uid) = (None, None, None, None);
    cursor.fields(|cursor, field| match field {
        "apiVersion" => once(&mut api_version, words(cursor)),
        "kind" => once(&mut kind, words(cursor)),
        "name" => once(&mut name, words(cursor)),
        "uid" => once(&mut uid, words(cursor)),
        _ => cursor.skip().map(drop),
    })?;
    Some(Owner {
        api_version: api_version.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        name: name.unwrap_or_default(),
        uid: uid.unwrap_or_default(),
    })
}

fn words<'a>(cursor: &mut Cursor<'a>) -> Option<Text<'a>> {
    cursor.plain().map(Text::from)
}

fn each<'a, T>(
    cursor: &mut Cursor<'a>,
    read: impl Fn(&mut Cursor<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut all = Vec::new();
    cursor.entries(|cursor| {
        all.push(read(cursor)?);
        Some(())
    })?;
    Some(all)
}

/// Fills a place that was empty; a second value is unusual.
fn once<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    let before = place.replace(value?);
    before.is_none().then_some(())
}
