//! A JSON text that is edited in place: what is not touched keeps its bytes, its order and its form.
//!
//! Every edit is one splice of the text, so a file's own indentation, line ends and odd spacing survive, and an
//! edit that is taken back leaves the text as it was.

use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::ser::PrettyFormatter;
use serde_json::value::RawValue;

use super::Unusable;

/// How far a text that has no indentation of its own is indented.
const UNIT: &str = "  ";

/// One step from a container to what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// An object as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Json {
    text: String,
    newline: &'static str,
    unit: String,
    /// Everything on one line.
    compact: bool,
}

/// Something in a container: a member with its key, or an element.
struct Item {
    key: Option<String>,
    start: usize,
    value: Range<usize>,
}

impl Json {
    /// Takes a text that holds one object.
    pub(super) fn parse(text: &str) -> Result<Self, Unusable> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Unusable(format!("it is not JSON: {error}")))?;
        if !value.is_object() {
            return Err(Unusable("it is JSON, but not an object".to_owned()));
        }
        let mut json = Self {
            text: text.to_owned(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: UNIT.to_owned(),
            compact: false,
        };
        if let Some(first) = json.items(&json.root()?)?.first() {
            let indent = json.indent_of(first.start).to_owned();
            json.compact = !json.text.trim().contains('\n');
            if json.stands_first(first.start) && !indent.is_empty() {
                json.unit = indent;
            }
        }
        Ok(json)
    }

    /// What the text says.
    pub(super) fn value(&self) -> Result<Value, Unusable> {
        serde_json::from_str(&self.text).map_err(|error| broken(&error))
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Puts a value at the end of a container: of an object under a key, of an array without one.
    pub(super) fn append(
        &mut self,
        at: &[Step<'_>],
        key: Option<&str>,
        value: &Value,
    ) -> Result<(), Unusable> {
        let container = self.find(at)?;
        let items = self.items(&container)?;
        let (place, piece) = match items.last() {
            Some(last) if self.stands_first(last.start) => {
                let indent = self.indent_of(last.start);
                let item = self.rendered(key, value, Some(indent))?;
                (last.value.end..last.value.end, format!(",{}{indent}{item}", self.newline))
            }
            Some(last) => {
                let own = self.text.get(container.clone()).unwrap_or_default();
                let indent = Some(self.indent_of(last.start)).filter(|_| own.contains('\n'));
                let gap = if self.compact { "," } else { ", " };
                let item = self.rendered(key, value, indent)?;
                (last.value.end..last.value.end, format!("{gap}{item}"))
            }
            None if self.compact => {
                (container.start + 1..container.end - 1, self.rendered(key, value, None)?)
            }
            None => {
                let outer = self.indent_of(container.start);
                let inner = format!("{outer}{}", self.unit);
                let item = self.rendered(key, value, Some(&inner))?;
                let newline = self.newline;
                (container.start + 1..container.end - 1, format!("{newline}{inner}{item}{newline}{outer}"))
            }
        };
        self.text.replace_range(place, &piece);
        Ok(())
    }

    /// Puts another value in the place of one that is there.
    pub(super) fn set(&mut self, at: &[Step<'_>], value: &Value) -> Result<(), Unusable> {
        let place = self.find(at)?;
        self.text.replace_range(place, &value.to_string());
        Ok(())
    }

    /// Takes something out of its container.
    pub(super) fn remove(&mut self, at: &[Step<'_>]) -> Result<(), Unusable> {
        let Some((last, above)) = at.split_last() else {
            return Err(Unusable("nothing was named".to_owned()));
        };
        let container = self.find(above)?;
        let items = self.items(&container)?;
        let index = position(&items, *last)?;
        let one = items.get(index).ok_or_else(missing)?;
        let before = index.checked_sub(1).and_then(|before| items.get(before));
        let gone = match (before, items.get(index + 1)) {
            (Some(before), _) => before.value.end..one.value.end,
            (None, Some(next)) => one.start..next.start,
            (None, None) => container.start + 1..container.end - 1,
        };
        self.text.replace_range(gone, "");
        Ok(())
    }

    fn root(&self) -> Result<Range<usize>, Unusable> {
        let raw: &RawValue = serde_json::from_str(&self.text).map_err(|error| broken(&error))?;
        Ok(self.place_of(raw.get()))
    }

    /// Where a piece of the text lies in it.
    fn place_of(&self, piece: &str) -> Range<usize> {
        let start = piece.as_ptr().addr() - self.text.as_ptr().addr();
        start..start + piece.len()
    }

    fn find(&self, at: &[Step<'_>]) -> Result<Range<usize>, Unusable> {
        let mut place = self.root()?;
        for step in at {
            let items = self.items(&place)?;
            place = items.get(position(&items, *step)?).ok_or_else(missing)?.value.clone();
        }
        Ok(place)
    }

    fn items(&self, container: &Range<usize>) -> Result<Vec<Item>, Unusable> {
        let text = self.text.get(container.clone()).ok_or_else(missing)?;
        let found: Vec<(Option<String>, &RawValue)> = if text.starts_with('{') {
            let mut reader = serde_json::Deserializer::from_str(text);
            let members = reader.deserialize_map(Members).map_err(|error| broken(&error))?;
            members.into_iter().map(|(key, value)| (Some(key), value)).collect()
        } else {
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| broken(&error))?;
            elements.into_iter().map(|value| (None, value)).collect()
        };
        let mut start = container.start + 1;
        let mut items = Vec::new();
        for (key, value) in found {
            start = self.skip(start, |c| c.is_ascii_whitespace() || c == ',');
            let value = self.place_of(value.get());
            let end = value.end;
            items.push(Item { key, start, value });
            start = end;
        }
        Ok(items)
    }

    fn skip(&self, from: usize, passes: impl Fn(char) -> bool) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        from + rest.find(|c| !passes(c)).unwrap_or(rest.len())
    }

    /// The text of the line before a place.
    fn line_before(&self, place: usize) -> &str {
        let before = self.text.get(..place).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default()
    }

    /// The indentation of the line a place is on.
    fn indent_of(&self, place: usize) -> &str {
        let line = self.line_before(place);
        line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
    }

    /// Whether nothing stands before a place on its line, and there is a line above.
    fn stands_first(&self, place: usize) -> bool {
        let line = self.line_before(place);
        line.trim().is_empty() && line.len() < place
    }

    /// An item as text, over several lines if an indentation is given.
    fn rendered(&self, key: Option<&str>, value: &Value, indent: Option<&str>) -> Result<String, Unusable> {
        let colon = if self.compact { ":" } else { ": " };
        let key = key.map(|key| format!("{}{colon}", Value::from(key))).unwrap_or_default();
        let Some(indent) = indent else { return Ok(format!("{key}{value}")) };
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        serde::Serialize::serialize(value, &mut writer).map_err(|error| broken(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| Unusable(error.to_string()))?;
        // A line feed inside a string is escaped, so every one here is the formatter's.
        Ok(format!("{key}{}", text.replace('\n', &format!("{}{indent}", self.newline))))
    }
}

fn position(items: &[Item], step: Step<'_>) -> Result<usize, Unusable> {
    let key = match step {
        Step::Index(index) => return Ok(index),
        Step::Key(key) => key,
    };
    let mut found = items.iter().enumerate().filter(|(_, item)| item.key.as_deref() == Some(key));
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(missing()),
        (Some(_), Some(_)) => Err(Unusable(format!("it has `{}` twice", key.escape_debug()))),
    }
}

fn broken(error: &serde_json::Error) -> Unusable {
    Unusable(format!("it is not JSON: {error}"))
}

fn missing() -> Unusable {
    Unusable("a part of it is not where it was".to_owned())
}

/// The members of an object in their order, each value as its text.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOOKS: [Step<'_>; 1] = [Step::Key("hooks")];

    fn json(text: &str) -> Json {
        Json::parse(text).expect("an object")
    }

    #[test]
    fn what_was_appended_and_is_taken_out_again_leaves_every_byte() {
        let texts = [
            "{\n  \"a\": 1\n}\n",
            "{\n\t\"a\" : [1,2],\n\n\t\"b\":{\"c\": 1e2}\n\t}",
            "{\r\n    \"a\": 1\r\n}\r\n",
            "{\"a\":1}",
            "{ \"a\": 1 }\n",
            "{}\n",
            "{\"a\": {\n  \"b\": 1}}",
        ];
        for text in texts {
            let mut edited = json(text);
            edited.append(&[], Some("hooks"), &json!({"Stop": [{"x": 1}]})).expect("appended");
            assert_eq!(edited.value().expect("JSON")["hooks"]["Stop"][0]["x"], 1, "{}", edited.text);
            edited.remove(&HOOKS).expect("removed");
            assert_eq!(edited.into_text(), text);
        }
    }

    #[test]
    fn an_addition_takes_the_form_of_the_text() {
        let appended = |text: &str| {
            let mut edited = json(text);
            edited.append(&[], Some("k"), &json!([{"x": 1}])).expect("appended");
            edited.into_text()
        };
        assert_eq!(appended("{\"a\":1}"), "{\"a\":1,\"k\":[{\"x\":1}]}");
        assert_eq!(
            appended("{\n\t\"a\": 1\n}"),
            "{\n\t\"a\": 1,\n\t\"k\": [\n\t\t{\n\t\t\t\"x\": 1\n\t\t}\n\t]\n}"
        );
        assert_eq!(appended("{}\n"), "{\n  \"k\": [\n    {\n      \"x\": 1\n    }\n  ]\n}\n");
        assert_eq!(
            appended("{\r\n \"a\": 1\r\n}"),
            "{\r\n \"a\": 1,\r\n \"k\": [\r\n  {\r\n   \"x\": 1\r\n  }\r\n ]\r\n}"
        );
    }

    #[test]
    fn an_element_joins_a_list_in_the_form_that_list_has() {
        let joined = |text: &str| {
            let mut edited = json(text);
            edited.append(&[Step::Key("l")], None, &json!({"x": 1})).expect("appended");
            edited.into_text()
        };
        assert_eq!(joined("{\n  \"l\": [1, 2]\n}"), "{\n  \"l\": [1, 2, {\"x\":1}]\n}");
        assert_eq!(
            joined("{\n  \"l\": [{\n    \"y\": 2\n  }]\n}"),
            "{\n  \"l\": [{\n    \"y\": 2\n  }, {\n    \"x\": 1\n  }]\n}"
        );
        assert_eq!(joined("{\n  \"l\": []\n}"), "{\n  \"l\": [\n    {\n      \"x\": 1\n    }\n  ]\n}");
        assert_eq!(joined("{\"l\":[]}"), "{\"l\":[{\"x\":1}]}");
    }

    #[test]
    fn the_first_the_middle_and_the_last_can_be_taken_out() {
        for (index, left) in [(0, "[2, 3]"), (1, "[1, 3]"), (2, "[1, 2]")] {
            let mut edited = json("{\"l\": [1, 2, 3]}");
            edited.remove(&[Step::Key("l"), Step::Index(index)]).expect("removed");
            assert_eq!(edited.into_text(), format!("{{\"l\": {left}}}"));
        }
    }

    #[test]
    fn escaped_keys_and_odd_values_are_stepped_over() {
        let mut edited = json(r#"{"\u0068ooks": {"a]}": "\"}],{", "b": [[], {}, "é"]}, "z": -0.0}"#);
        edited.set(&[Step::Key("hooks"), Step::Key("b"), Step::Index(2)], &json!("x\"\n")).expect("set");
        assert_eq!(
            edited.into_text(),
            r#"{"\u0068ooks": {"a]}": "\"}],{", "b": [[], {}, "x\"\n"]}, "z": -0.0}"#
        );
    }

    #[test]
    fn a_text_that_cannot_be_edited_is_told_why() {
        let told = |text: &str| Json::parse(text).expect_err("it was taken").0;
        assert!(told("{\n  // mine\n}").starts_with("it is not JSON: key must be a string at line 2"));
        assert!(told("").starts_with("it is not JSON: EOF"));
        assert!(told("\u{feff}{}").starts_with("it is not JSON"));
        assert_eq!(told("[]"), "it is JSON, but not an object");
        let twice = json("{\"hooks\": {}, \"hooks\": {}}").remove(&HOOKS);
        assert_eq!(twice.expect_err("ambiguous").0, "it has `hooks` twice");
    }
}
