//! The four forms in which the agents ask a model, and in which it answers them. No fields are sent but those
//! that some agent needs.

use serde_json::{Value, json};

use crate::http::Frame;
use crate::model::Turn;

/// A form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wire {
    /// Claude Code: `POST /v1/messages`.
    Messages,
    /// Codex: `POST /v1/responses`.
    Responses,
    /// Qwen Code and Copilot: `POST /v1/chat/completions`.
    Completions,
    /// Gemini CLI: `POST /v1beta/models/NAME:streamGenerateContent`.
    Generate,
}

impl Wire {
    /// The form of a request to this path that wants a model's turn.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path {
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/chat/completions") => Some(Self::Completions),
            _ if path.ends_with(":streamGenerateContent") => Some(Self::Generate),
            _ => None,
        }
    }

    /// The names of the tools that a request offers.
    pub(crate) fn tools(body: &Value) -> Vec<String> {
        let mut names = Vec::new();
        for tool in list(&body["tools"]) {
            let declared = list(&tool["functionDeclarations"]);
            let own = [&tool["name"], &tool["function"]["name"]].into_iter();
            let all = own.chain(declared.iter().map(|function| &function["name"]));
            names.extend(all.filter_map(Value::as_str).map(str::to_owned));
        }
        names
    }

    /// Every text that a request has after the model's last turn.
    pub(crate) fn newest(self, body: &Value) -> String {
        let messages = match self {
            Self::Messages | Self::Completions => &body["messages"],
            Self::Responses => &body["input"],
            Self::Generate => &body["contents"],
        };
        let by_model = |message: &&Value| {
            ["assistant", "model"].iter().any(|role| message["role"] == *role)
                || message["type"] == "function_call"
        };
        let messages = list(messages);
        let old = messages.iter().rposition(|message| by_model(&message)).map_or(0, |last| last + 1);
        let mut texts = Vec::new();
        messages[old..].iter().for_each(|message| collect_texts(message, &mut texts));
        texts.join("\n")
    }

    /// The events that say this turn. `n` tells the ids of one turn from those of another.
    pub(crate) fn frames(self, turn: &Turn, n: usize) -> Vec<Frame> {
        match self {
            Self::Messages => messages(turn, n),
            Self::Responses => responses(turn, n),
            Self::Completions => completions(turn, n),
            Self::Generate => generate(turn, n),
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if matches!(name.as_str(), "text" | "content" | "output") => {
                        texts.push(text.clone());
                    }
                    other => collect_texts(other, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

fn named(event: &Value) -> Frame {
    // The name is also a field of the data; only these are ever sent.
    const NAMES: [&str; 9] = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "response.created",
        "response.output_item.done",
        "response.completed",
    ];
    let name = NAMES.into_iter().find(|name| event["type"] == *name);
    (name, event.to_string())
}

fn messages(turn: &Turn, n: usize) -> Vec<Frame> {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-x",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    let mut block = |index: usize, block: Value, delta: Value| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    let text = json!({"type": "text_delta", "text": turn.text});
    block(0, json!({"type": "text", "text": ""}), text);
    for (index, (name, input)) in (1..).zip(&turn.calls) {
        let tool = json!({"type": "tool_use", "id": format!("toolu_{n}_{index}"), "name": name, "input": {}});
        block(index, tool, json!({"type": "input_json_delta", "partial_json": input.to_string()}));
    }
    let reason = if turn.calls.is_empty() { "end_turn" } else { "tool_use" };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(named).collect()
}

fn responses(turn: &Turn, n: usize) -> Vec<Frame> {
    let text = json!({"type": "output_text", "text": turn.text, "annotations": []});
    let mut output =
        vec![json!({"type": "message", "id": format!("msg_{n}"), "role": "assistant", "status": "completed",
        "content": [text]})];
    for (index, (name, input)) in turn.calls.iter().enumerate() {
        let mut call = json!({"type": "function_call", "id": format!("fc_{n}_{index}"),
            "call_id": format!("call_{n}_{index}"), "name": name, "arguments": input.to_string(),
            "status": "completed"});
        // Codex keeps its tools for sub-agents in a name space of their own.
        if let Some((space, name)) = name.split_once("::") {
            call["namespace"] = space.into();
            call["name"] = name.into();
        }
        output.push(call);
    }
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
    let response = |status: &str, output: &[Value]| {
        json!({"id": format!("resp_{n}"), "object": "response", "status": status, "output": output,
            "usage": usage})
    };
    let mut events = vec![json!({"type": "response.created", "response": response("in_progress", &[])})];
    for (index, item) in output.iter().enumerate() {
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response("completed", &output)}));
    events.iter().map(named).collect()
}

fn completions(turn: &Turn, n: usize) -> Vec<Frame> {
    let mut delta = json!({"role": "assistant", "content": turn.text});
    let call = |(index, (name, input)): (usize, &(String, Value))| {
        json!({"index": index, "id": format!("call_{n}_{index}"), "type": "function",
            "function": {"name": name, "arguments": input.to_string()}})
    };
    if !turn.calls.is_empty() {
        delta["tool_calls"] = turn.calls.iter().enumerate().map(call).collect();
    }
    let reason = if turn.calls.is_empty() { "stop" } else { "tool_calls" };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        let chunk = json!({"id": format!("c_{n}"), "object": "chat.completion.chunk", "created": 1,
            "model": "x", "choices": [choice], "usage": usage});
        (None, chunk.to_string())
    };
    vec![chunk(delta, Value::Null), chunk(json!({}), reason.into()), (None, "[DONE]".to_owned())]
}

fn generate(turn: &Turn, n: usize) -> Vec<Frame> {
    let mut parts = vec![json!({"text": turn.text})];
    for (index, (name, args)) in turn.calls.iter().enumerate() {
        parts.push(json!({"functionCall": {"name": name, "args": args, "id": format!("call_{n}_{index}")}}));
    }
    let content = json!({"role": "model", "parts": parts});
    let candidates = json!([{"content": content, "finishReason": "STOP", "index": 0}]);
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    vec![(None, json!({"candidates": candidates, "usageMetadata": usage, "modelVersion": "x"}).to_string())]
}
