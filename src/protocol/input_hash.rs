//! The hash that names a step's input: `sha256:` of the JSON text of `{"stepId", "input"}` with the keys of the
//! input sorted, exactly as a JavaScript program writes it, so that both name one input alike.

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use super::ids::{InvalidId, Name};

/// The hash of a step's input.
pub fn input_hash(step: &Name, input: &Value) -> Result<Name, InvalidId> {
    use std::fmt::Write as _;
    let mut text = String::from("{\"stepId\":");
    write_text(step.as_str(), &mut text);
    text.push_str(",\"input\":");
    write_value(input, &mut text);
    text.push('}');
    let mut hash = String::from("sha256:");
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    Name::parse(&hash)
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(object) => write_object(object, out),
    }
}

fn write_object(object: &Map<String, Value>, out: &mut String) {
    let mut keys: Vec<&String> = object.keys().collect();
    // A JavaScript object lists keys that are array indices first, by number, however they were put in; the
    // others were sorted by UTF-16 code units.
    keys.sort_by(|a, b| match (array_index(a), array_index(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.encode_utf16().cmp(b.encode_utf16()),
    });
    out.push('{');
    for (index, key) in keys.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(key, out);
        out.push(':');
        write_value(object.get(key).unwrap_or(&Value::Null), out);
    }
    out.push('}');
}

fn array_index(key: &str) -> Option<u32> {
    key.parse::<u32>().ok().filter(|index| *index < u32::MAX && index.to_string() == key)
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::String(text.to_owned()).to_string());
}

/// A number as JavaScript prints it: it has doubles only, and changes to exponents at 1e21 and below 1e-6.
fn number_text(number: &Number) -> String {
    let Some(x) = number.as_f64() else { return number.to_string() };
    if x == 0.0 {
        return "0".to_owned();
    }
    // `{:e}` gives the shortest digits that read back as the same double.
    let shortest = format!("{x:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let n_digits = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The value is 0.DIGITS times ten to this power.
    let point = exponent + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or(0));
    let body = if n_digits <= point && point <= 21 {
        format!("{digits}{}", zeros(point - n_digits))
    } else if 0 < point && point <= 21 {
        let (whole, rest) = split(point);
        format!("{whole}.{rest}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = split(1);
        let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{first}{fraction}e{sign}{}", exponent.abs())
    };
    format!("{sign}{body}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        let mut out = String::new();
        write_value(&serde_json::from_str(json).unwrap(), &mut out);
        out
    }

    #[test]
    fn keys_are_sorted_at_every_depth_and_lists_are_not() {
        assert_eq!(
            canonical(r#"{"b":[{"z":1,"a":2},3],"a":{"y":null,"x":true}}"#),
            r#"{"a":{"x":true,"y":null},"b":[{"a":2,"z":1},3]}"#
        );
    }

    #[test]
    fn keys_that_are_array_indices_come_first_by_number() {
        assert_eq!(canonical(r#"{"b":1,"10":2,"9":3,"01":4}"#), r#"{"9":3,"10":2,"01":4,"b":1}"#);
    }

    #[test]
    fn numbers_are_printed_as_javascript_prints_them() {
        // The right column was printed by `JSON.stringify(JSON.parse(text))`.
        for (given, wanted) in [
            ("1.0", "1"),
            ("-0", "0"),
            ("0.1", "0.1"),
            ("1e21", "1e+21"),
            ("123456789012345680000", "123456789012345680000"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("1.5e300", "1.5e+300"),
            ("-2.5e-9", "-2.5e-9"),
            ("9007199254740993", "9007199254740992"),
            ("100", "100"),
            ("12.5", "12.5"),
        ] {
            assert_eq!(canonical(given), wanted, "{given}");
        }
    }

    #[test]
    fn the_hash_is_the_one_of_the_canonical_text() {
        // printf '%s' '{"stepId":"scan","input":{"a":1,"b":"x"}}' | sha256sum
        let step = Name::parse("scan").unwrap();
        let hash = input_hash(&step, &serde_json::json!({ "b": "x", "a": 1 })).unwrap();
        assert_eq!(hash.as_str(), "sha256:9ae3e1fb99bdd4a4447e0956e979a0a797463dccfcb5674110f73852586e95e7");
    }
}
