//! The strict envelope of a to-do list (O45). Nothing else that looks like a list is trusted: a list arms the guard.

use std::collections::HashSet;

use serde_json::Value;

/// The word that says what the envelope holds.
const KIND: &str = "todo_list";

/// Why a value is no such envelope, in one clause. It quotes no item's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

fn malformed<T>(what: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed(what.into()))
}

/// Reads the envelope: its items by id, and whether each is done. Fields it does not know are no reason to doubt it.
pub fn parse(value: &Value) -> Result<Vec<(String, bool)>, Malformed> {
    let Value::Object(envelope) = value else {
        return malformed(format!("it is {}, not an object", name_of(value)));
    };
    match envelope.get("kind") {
        Some(Value::String(kind)) if kind == KIND => {}
        Some(_) => return malformed(format!("its `kind` is not \"{KIND}\"")),
        None => return malformed(format!("it has no `kind`; a list has \"{KIND}\" there")),
    }
    let Some(Value::Array(todos)) = envelope.get("todos") else {
        return malformed("its `todos` is not an array");
    };
    let mut seen = HashSet::new();
    let mut items = Vec::with_capacity(todos.len());
    for (index, todo) in todos.iter().enumerate() {
        let (id, done) = item(todo).map_err(|what| Malformed(format!("`todos[{index}]`: {what}")))?;
        if !seen.insert(id) {
            return malformed(format!("`todos[{index}]`: its id was used before"));
        }
        items.push((id.to_owned(), done));
    }
    Ok(items)
}

fn item(todo: &Value) -> Result<(&str, bool), String> {
    let Value::Object(fields) = todo else {
        return Err(format!("it is {}, not an object", name_of(todo)));
    };
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(format!("its `{name}` is {}, not a string", name_of(other))),
        None => Err(format!("it has no `{name}`")),
    };
    let id = text("id")?;
    if id.is_empty() {
        return Err("its `id` is empty".to_owned());
    }
    text("content")?;
    match text("status")? {
        "pending" | "in_progress" => Ok((id, false)),
        "completed" => Ok((id, true)),
        _ => Err("its `status` is none of pending, in_progress and completed".to_owned()),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn todo(id: &str, status: &str) -> Value {
        json!({ "id": id, "content": "c", "status": status })
    }

    #[allow(clippy::needless_pass_by_value, reason = "its callers make it for the call")]
    fn list(todos: Value) -> Value {
        json!({ "kind": "todo_list", "todos": todos })
    }

    #[test]
    fn an_envelope_gives_its_items_in_order() {
        let todos = json!([todo("b", "pending"), todo("a", "in_progress"), todo("c", "completed")]);
        let items = parse(&list(todos)).expect("well formed");
        assert_eq!(items, [("b".to_owned(), false), ("a".to_owned(), false), ("c".to_owned(), true)]);
        assert_eq!(parse(&list(json!([]))), Ok(vec![]));
        let more = json!({ "kind": "todo_list", "todos": [
            { "id": "1", "content": "", "status": "pending", "activeForm": "x" }
        ], "at": 1 });
        assert_eq!(parse(&more).map(|items| items.len()), Ok(1));
    }

    #[test]
    fn whatever_else_is_malformed_as_a_whole() {
        let good = todo("a", "pending");
        for (value, told) in [
            (json!(list(json!([good])).to_string()), "it is a string, not an object"),
            (json!(null), "it is null, not an object"),
            (json!([good]), "it is an array, not an object"),
            (json!({ "todos": [] }), "it has no `kind`; a list has \"todo_list\" there"),
            (json!({ "kind": "todos", "todos": [] }), "its `kind` is not \"todo_list\""),
            (json!({ "kind": ["todo_list"], "todos": [] }), "its `kind` is not \"todo_list\""),
            (json!({ "kind": "todo_list" }), "its `todos` is not an array"),
            (list(json!({ "a": good })), "its `todos` is not an array"),
            (list(json!([good, "b"])), "`todos[1]`: it is a string, not an object"),
            (list(json!([{ "content": "c", "status": "pending" }])), "`todos[0]`: it has no `id`"),
            (
                list(json!([{ "id": 1, "content": "c", "status": "pending" }])),
                "`todos[0]`: its `id` is a number, not a string",
            ),
            (list(json!([todo("", "pending")])), "`todos[0]`: its `id` is empty"),
            (list(json!([{ "id": "a", "status": "pending" }])), "`todos[0]`: it has no `content`"),
            (
                list(json!([{ "id": "a", "content": true, "status": "pending" }])),
                "`todos[0]`: its `content` is a boolean, not a string",
            ),
            (list(json!([{ "id": "a", "content": "c" }])), "`todos[0]`: it has no `status`"),
            (
                list(json!([todo("a", "done")])),
                "`todos[0]`: its `status` is none of pending, in_progress and completed",
            ),
            (list(json!([good, todo("a", "completed")])), "`todos[1]`: its id was used before"),
        ] {
            assert_eq!(parse(&value).expect_err("malformed").to_string(), told, "{value}");
        }
    }
}
