//! OTLP in JSON, turned into protobuf on the fly, so that there is one way into the store.
//!
//! By hand, because the generated types lose whole metrics without a word where a number is `"NaN"`, a number in quotes, or
//! an enumeration by name.

mod schema;

use std::fmt;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::{answer::Denied, write::Writer};
use schema::{Form, Message};

/// Turns a request in JSON into one in protobuf of at most `most` bytes. Without that bound a list as `[1,1,1]`, of whose
/// numbers each becomes nine bytes, would take several times the memory that a request may.
pub fn to_protobuf(json: &[u8], most: usize) -> Result<Vec<u8>, Denied> {
    let mut writer = Writer::up_to(most);
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let fields = Fields {
        message: &schema::REQUEST,
        writer: &mut writer,
    };
    let read = fields
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match read {
        _ if writer.is_over() => Err(Denied::TooLarge(most)),
        Ok(()) => Ok(writer.into_bytes()),
        Err(error) => Err(Denied::Malformed(error.to_string())),
    }
}

/// Ends the reading of what is too large already; what the error says is not looked at.
fn within<E: de::Error>(writer: &Writer) -> Result<(), E> {
    match writer.is_over() {
        true => Err(E::custom("there is no room for more")),
        false => Ok(()),
    }
}

/// An object, written as the fields of a message.
struct Fields<'w> {
    message: &'static Message,
    writer: &'w mut Writer,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key_seed(Name(self.message))? {
            match field {
                Some((number, form)) => map.next_value_seed(Value {
                    number,
                    form,
                    writer: self.writer,
                })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
            within(self.writer)?;
        }
        Ok(())
    }
}

/// The name of a field, looked up; unknown ones are ignored as OTLP says.
struct Name(&'static Message);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<(u32, Form)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<(u32, Form)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let field = self.0.0.iter().find(|field| field.0 == name);
        Ok(field.map(|(_, number, form)| (*number, *form)))
    }
}

/// The value of a field.
struct Value<'w> {
    number: u32,
    form: Form,
    writer: &'w mut Writer,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Expected for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a text",
            Self::Hex => "a text of hexadecimal digits",
            Self::Base64 => "a text in base64",
            Self::Bool => "true or false",
            Self::Double => "a number, or \"NaN\", \"Infinity\" or \"-Infinity\"",
            Self::Fixed | Self::SignedFixed | Self::Varint | Self::SignedVarint => {
                "a whole number, or one as text"
            }
            Self::Zigzag => "a whole number of 32 bits",
            Self::Temporality => "a temporality",
            Self::One(_) => "an object",
            Self::Many(_) | Self::Doubles | Self::Fixeds | Self::Varints => "a list",
        })
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Expected::fmt(&self.form, f)
    }

    /// As if the field were not there.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        if !matches!(self.form, Form::Bool) {
            return Err(E::invalid_type(de::Unexpected::Bool(value), &self));
        }
        self.writer.varint(self.number, value.into());
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        if matches!(self.form, Form::Double | Form::Doubles) {
            self.writer.double(self.number, value);
            return Ok(());
        }
        // 1e3 and 3.0 are whole numbers.
        match value.fract() == 0.0 && value.abs() < 2_f64.powi(63) {
            true => self.whole(value as i128),
            false => Err(E::invalid_type(de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let form = self.form;
        let wrong = || E::invalid_value(de::Unexpected::Str(text), &form);
        match self.form {
            Form::Text => self.writer.bytes(self.number, text.as_bytes()),
            Form::Hex => self
                .writer
                .bytes(self.number, &unhex(text).ok_or_else(wrong)?),
            Form::Base64 => self
                .writer
                .bytes(self.number, &unbase64(text).ok_or_else(wrong)?),
            Form::Double | Form::Doubles => {
                let value = double(text).ok_or_else(wrong)?;
                self.writer.double(self.number, value);
            }
            Form::Temporality => {
                // Names are against the rules, but there are senders that use them.
                let value = match text.strip_prefix("AGGREGATION_TEMPORALITY_") {
                    Some("UNSPECIFIED") => 0,
                    Some("DELTA") => 1,
                    Some("CUMULATIVE") => 2,
                    _ => text.parse().map_err(|_| wrong())?,
                };
                self.writer.varint(self.number, value);
            }
            Form::Fixed
            | Form::SignedFixed
            | Form::Varint
            | Form::SignedVarint
            | Form::Zigzag
            | Form::Fixeds
            | Form::Varints => {
                let value = whole(text).ok_or_else(wrong)?;
                return self.whole(value);
            }
            Form::Bool | Form::One(_) | Form::Many(_) => return Err(wrong()),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let Form::One(message) = self.form else {
            return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
        };
        let open = self.writer.open(self.number);
        let fields = Fields {
            message,
            writer: &mut *self.writer,
        };
        fields.visit_map(map)?;
        self.writer.close(open);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some(form) = self.form.each() else {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        };
        while list
            .next_element_seed(Value {
                number: self.number,
                form,
                writer: &mut *self.writer,
            })?
            .is_some()
        {
            within(self.writer)?;
        }
        Ok(())
    }
}

impl Value<'_> {
    fn whole<E: de::Error>(self, value: i128) -> Result<(), E> {
        let wrong = || E::custom(format_args!("{value} is out of range"));
        let Self {
            number,
            form,
            writer,
        } = self;
        match form {
            #[expect(
                clippy::cast_precision_loss,
                reason = "the sender chose a whole number for a double"
            )]
            Form::Double | Form::Doubles => writer.double(number, value as f64),
            Form::Fixed | Form::Fixeds => {
                writer.fixed64(number, value.try_into().map_err(|_| wrong())?)
            }
            Form::SignedFixed => {
                let value: i64 = value.try_into().map_err(|_| wrong())?;
                writer.fixed64(number, value.cast_unsigned());
            }
            Form::Varint | Form::Varints => {
                writer.varint(number, value.try_into().map_err(|_| wrong())?)
            }
            Form::SignedVarint => {
                let value: i64 = value.try_into().map_err(|_| wrong())?;
                writer.varint(number, value.cast_unsigned());
            }
            Form::Zigzag => writer.sint32(number, value.try_into().map_err(|_| wrong())?),
            Form::Temporality => writer.varint(number, value.try_into().map_err(|_| wrong())?),
            Form::Bool | Form::Text | Form::Hex | Form::Base64 | Form::One(_) | Form::Many(_) => {
                return Err(E::custom("a number stands where none may"));
            }
        }
        Ok(())
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn whole(text: &str) -> Option<i128> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() < 2_f64.powi(63)).then_some(value as i128)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

/// Standard or for addresses, padded or not: all are allowed.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    const ANY: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY);
    const FOR_ADDRESSES: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY);
    STANDARD
        .decode(text)
        .or_else(|_| FOR_ADDRESSES.decode(text))
        .ok()
}

#[cfg(test)]
mod tests;
