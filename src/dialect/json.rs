//! Standard input as one JSON object: strict where a careless reader would guess, lenient only about text that a
//! person may have typed.
//!
//! A name that occurs twice is refused at any depth, because two readers could see two different events. Half of
//! a surrogate pair is the exception to strictness: an editor can cut an emoji in two, the agent passes it on as
//! an escape that is no text, and the person's prompt counts all the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};

use super::Unusable;

/// Reads standard input as exactly one object.
pub(super) fn object(stdin: &[u8]) -> Result<Map<String, Value>, Unusable> {
    let text = str::from_utf8(stdin).map_err(|_| Unusable::NotUtf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Unusable::Empty);
    }
    match value(&without_lone_surrogates(text))? {
        Value::Object(object) => Ok(object),
        _ => Err(Unusable::NotAnObject),
    }
}

fn value(text: &str) -> Result<Value, Unusable> {
    // The parser's own bound on nesting keeps the stack small.
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = Strict.deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    parsed.map_err(|error| match error.classify() {
        // The parser takes any type here, so the only complaint about data is our own.
        Category::Data => Unusable::DuplicateName,
        _ => Unusable::NotJson { line: error.line(), column: error.column() },
    })
}

/// Any JSON value in which no object has a name twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            found.push(item);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if found.contains_key(&name) {
                return Err(de::Error::custom("a name occurs twice"));
            }
            let value = fields.next_value_seed(Self)?;
            found.insert(name, value);
        }
        Ok(Value::Object(found))
    }
}

/// The escape of one UTF-16 unit, `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// The text with every escaped half of a surrogate pair replaced by the escape of U+FFFD.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut copied_to = 0;
    let mut at = 0;
    // A backslash stands only inside strings, and escapes exactly what follows it, so no state is needed.
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += offset;
        match unit(text, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(text, at + ESCAPE_LEN), Some(0xDC00..=0xDFFF)) => {
                at += 2 * ESCAPE_LEN;
            }
            Some(0xD800..=0xDFFF) => {
                repaired.push_str(text.get(copied_to..at).unwrap_or_default());
                repaired.push_str("\\ufffd");
                at += ESCAPE_LEN;
                copied_to = at;
            }
            Some(_) => at += ESCAPE_LEN,
            // Another escape: the backslash and the character after it, which may be a backslash.
            None => {
                let escaped = text.get(at + 1..).and_then(|rest| rest.chars().next());
                at += 1 + escaped.map_or(0, char::len_utf8);
            }
        }
    }
    if copied_to == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(text.get(copied_to..).unwrap_or_default());
    Cow::Owned(repaired)
}

/// The UTF-16 unit whose escape begins at `at`, if one does.
fn unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + ESCAPE_LEN)?.strip_prefix("\\u")?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}
