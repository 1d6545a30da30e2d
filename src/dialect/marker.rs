//! Marks in a text that goes to an agent and may come back as a prompt: `[lychgate tkt_0123456789abcdef]` on a
//! continuation, `[lychgate prm_0123456789abcdef]` on a prompt that a script hands on. By them our own text is
//! recognised, so it is never taken for a person's.

const OPENING: &str = "[lychgate ";
const CLOSING: char = ']';

/// What a mark stands for.
#[derive(Clone, Copy)]
enum Mark {
    Ticket,
    Prompt,
}

impl Mark {
    /// Whether this is an id of this sort.
    fn is_id(self, id: &str) -> bool {
        let (digits, lengths) = match self {
            Self::Ticket => (id.strip_prefix("tkt_"), 16..=16),
            Self::Prompt => (id.strip_prefix("prm_"), 1..=64),
        };
        digits.is_some_and(|digits| {
            lengths.contains(&digits.len())
                && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    }
}

/// The ticket of a continuation in this text: the last one, because ours is at the end.
pub fn ticket_in(text: &str) -> Option<&str> {
    last(text, Mark::Ticket)
}

/// The text with the mark of a ticket at its end.
pub fn with_ticket(text: &str, ticket: &str) -> String {
    with(text, ticket)
}

/// The prompt id in a text that a script handed on: the last one.
pub fn prompt_in(text: &str) -> Option<&str> {
    last(text, Mark::Prompt)
}

/// The text with the mark of a prompt at its end.
pub fn with_prompt(text: &str, prompt: &str) -> String {
    with(text, prompt)
}

fn last(text: &str, mark: Mark) -> Option<&str> {
    let mut marks = text.rmatch_indices(OPENING);
    marks.find_map(|(at, opening)| {
        let (id, _) = text.get(at + opening.len()..)?.split_once(CLOSING)?;
        Some(id).filter(|id| mark.is_id(id))
    })
}

fn with(text: &str, id: &str) -> String {
    let text = text.trim_end();
    let gap = if text.is_empty() { "" } else { "\n\n" };
    format!("{text}{gap}{OPENING}{id}{CLOSING}")
}

/// What stands where something was cut out.
const CUT: &str = " ...";

/// The text with at most this many characters. What goes is the end of the text, but never a mark behind it.
pub(super) fn bounded(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let at = text.rfind(OPENING).filter(|_| text.ends_with(CLOSING));
    let (body, mark) = text.split_at(at.unwrap_or(text.len()));
    let gap = if mark.is_empty() { "" } else { "\n\n" };
    let tail = format!("{CUT}{gap}{mark}");
    let room = chars_max.saturating_sub(tail.chars().count());
    body.chars().take(room).chain(tail.chars()).collect()
}
