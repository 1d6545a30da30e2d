//! Which words of such a root may be repeated: never what looks like a credential, and of a row only what is
//! about its task.

use serde_json::{Map, Value};

/// What is told in place of words that look like a credential.
pub const WITHHELD: &str = "[withheld: it looks like a credential]";
/// What is kept of one field, as JSON.
pub const FIELD_BYTES_MAX: usize = 64 * 1024;

/// Fields of a row about its task whose names do not begin with `task`.
const ABOUT_THE_TASK: [&str; 13] = [
    "name",
    "title",
    "createdAt",
    "agentId",
    "agentType",
    "reportedAt",
    "archivedAt",
    "unarchivedAt",
    "workflowTask",
    "parentWorkspaceId",
    "path",
    "subProjectPath",
    "id",
];
/// Fields that our own row has a place for.
const HAVE_A_PLACE: [&str; 5] =
    ["id", "parentWorkspaceId", "taskAttemptId", "taskAttemptUnproven", "taskAttemptRetiredBy"];
/// Names that hold credentials wherever they stand.
const SECRET_NAMES: [&str; 10] = [
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "bearer",
    "cookie",
];
/// How credentials begin, whatever field they stand in.
const SECRET_BEGINNINGS: [&str; 14] = [
    "sk-",
    "sk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "Bearer ",
    "-----BEGIN",
];

fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    // That application's own word for marks that name a try, and grant nothing.
    let token = plain.contains("token") && plain != "tasktimeoutfinalizationtokens";
    token || SECRET_NAMES.iter().any(|secret| plain.contains(secret))
}

/// Whether a text holds a word that looks like a credential.
pub fn is_secret_text(text: &str) -> bool {
    let begins = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric())
    };
    SECRET_BEGINNINGS.iter().any(|beginning| {
        text.match_indices(beginning).any(|(at, _)| {
            let tail = text.get(at + beginning.len()..).unwrap_or_default();
            let long = tail.chars().take_while(|c| !c.is_whitespace()).count() >= 8;
            begins(at) && (long || beginning.ends_with('N'))
        })
    })
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => is_secret_text(text),
        Value::Array(items) => items.iter().any(holds_secret),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| is_secret_name(name) || holds_secret(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text of such a root, as it may be shown.
pub fn shown(text: &str) -> &str {
    if is_secret_text(text) { WITHHELD } else { text }
}

/// Why a field is not kept.
fn refused(name: &str, value: &Value) -> Option<&'static str> {
    if is_secret_name(name) || holds_secret(value) {
        return Some("it looks like a credential");
    }
    // The length of its JSON is what it would take in the row.
    (value.to_string().len() > FIELD_BYTES_MAX).then_some("it is too large")
}

/// Takes a value that is kept beside a row, or says why it is not.
pub fn checked(name: &str, value: &Value) -> Result<Value, &'static str> {
    refused(name, value).map_or_else(|| Ok(value.clone()), Err)
}

/// The fields of a row that ours has no place for and that are kept beside it, and those that are left out with
/// the reason. Fields that are not about the task are that application's own affair, and are not told.
pub fn kept(fields: &Map<String, Value>) -> (Map<String, Value>, Vec<(String, &'static str)>) {
    let mut kept = Map::new();
    let mut left_out = Vec::new();
    for (name, value) in fields {
        let about = name.starts_with("task") || ABOUT_THE_TASK.contains(&name.as_str());
        if !about || HAVE_A_PLACE.contains(&name.as_str()) {
            continue;
        }
        match checked(name, value) {
            Ok(value) => {
                kept.insert(name.clone(), value);
            }
            Err(why) => left_out.push((name.clone(), why)),
        }
    }
    (kept, left_out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_credential_is_never_repeated() {
        for text in ["sk-abcdefghijkl", "key: ghp_0123456789ab", "-----BEGIN KEY", "Bearer abcdefgh1"] {
            assert_eq!(shown(text), WITHHELD, "{text}");
        }
        for text in ["task-abcdefghij", "risk-abcdefghi", "sk-1", "AKI", "att_00000000000000c1"] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn only_fields_about_the_task_are_kept_and_no_credential_among_them() {
        let fields = json!({
            "taskStatus": "running", "taskPrompt": "do it", "taskTimeoutFinalizationTokens": ["a"],
            "taskApiKey": "x", "taskExperiments": { "deep": { "accessToken": "x" } }, "runtimeConfig": {},
            "taskLaunchError": "Incorrect key sk-abcdefghijkl", "title": "t", "taskLater": 1,
        });
        let (kept, left_out) = kept(fields.as_object().unwrap());
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["taskStatus", "taskPrompt", "taskTimeoutFinalizationTokens", "title", "taskLater"]
        );
        let names: Vec<&str> = left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["taskApiKey", "taskExperiments", "taskLaunchError"]);
    }
}
