//! Notices of what had no place in a queue.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::facts;
use crate::protocol::codes::Code;
use crate::protocol::guard::Answered;
use crate::protocol::guard::session::Session;
use crate::protocol::guard::work::{Work, refused, said};
use crate::protocol::ids::{GapId, Name, Timestamp};
use crate::protocol::row::Extra;
use crate::protocol::verdict::{Facts, Refusal};

/// Gap notices that are kept apart. Past it the two oldest become one.
pub const GAPS_MAX: usize = 200;
/// Items that one gap notice names. Past it they are only counted.
pub const GAP_IDS_MAX: usize = 500;
/// Items that all gap notices name together, before the oldest become one.
const GAP_IDS_ALL_MAX: usize = 2_000;
/// Bytes of text that all gap notices hold together.
pub const GAP_TEXT_BYTES_MAX: usize = 64 * 1024;

/// What had no place in a queue, all of one arrival. It survives everything but its acknowledgement (O69).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// Which. When two become one, the one has an id that nobody has seen: what is acknowledged was read.
    pub gap_id: GapId,
    /// Which queue: `notifications` or `crons`.
    pub queue: String,
    /// What was left out.
    pub omitted: Vec<Omitted>,
    /// How many more were, of which nothing else is known any more.
    #[serde(default)]
    pub more: u64,
    /// Whether any of it belonged to the chain.
    pub related: bool,
    /// When.
    pub at: Timestamp,
    /// Its order.
    pub seq: u64,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An item that had no place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Its id.
    pub id: Name,
    /// The task or the timer it comes from.
    pub task_id: Name,
    /// Whether it belonged to the chain.
    pub related: bool,
    /// What kind of result, in the sender's word; `wakeup` for one of a timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the task ended, in the sender's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Its text, whole, where there was room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It had a text, and there was no room for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_left_out: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Session {
    /// The notice that names this item of this queue.
    pub(super) fn gap_of(&self, queue: &str, id: &Name) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.queue == queue && gap.omitted.iter().any(|item| item.id == *id))
    }

    fn gap_text_bytes(&self) -> usize {
        let texts = self.gaps.iter().flat_map(|gap| &gap.omitted).filter_map(|item| item.text.as_ref());
        texts.map(String::len).sum()
    }
}

impl Work<'_> {
    /// `gaps`: tells every notice, or forgets those that arrived.
    pub(crate) fn gaps(&mut self, ack: &[GapId]) -> Answered {
        if ack.is_empty() {
            let gaps = &self.session.gaps;
            let message = format!("{} notices of what had no place in a queue", gaps.len());
            return said(Code::Ok, message, facts! { "gaps": gaps });
        }
        let (arrived, unknown): (Vec<&GapId>, Vec<&GapId>) =
            ack.iter().partition(|id| self.session.gaps.iter().any(|gap| gap.gap_id == **id));
        if arrived.is_empty() {
            let message =
                "no such gap notice is kept: it was acknowledged, or became one with another".to_owned();
            let refusal =
                Refusal::new(Code::NoSuchItem, message).hint("`gaps` without `--ack` tells what is kept");
            return refused(refusal.fact("left", self.session.gaps.len()));
        }
        self.session.gaps.retain(|gap| !arrived.contains(&&gap.gap_id));
        for id in &arrived {
            self.log("gap-acknowledged", Some(id.as_str()), None);
        }
        let left = self.session.gaps.len();
        let facts = facts! { "acknowledged": arrived, "unknown": unknown, "left": left };
        said(
            Code::Acknowledged,
            format!("{} gap notices are forgotten, {left} are left", arrived.len()),
            facts,
        )
    }

    /// Keeps a notice of everything that one arrival left without a place. One arrival, one notice, one
    /// diagnostic (O67).
    pub(super) fn omit(&mut self, queue: &str, mut omitted: Vec<Omitted>, facts: &mut Facts) {
        if omitted.is_empty() {
            return;
        }
        let mut room = GAP_TEXT_BYTES_MAX.saturating_sub(self.session.gap_text_bytes());
        for item in &mut omitted {
            let bytes = item.text.as_ref().map_or(0, String::len);
            if bytes > room {
                item.text = None;
                item.text_left_out = true;
            } else {
                room -= bytes;
            }
        }
        let ids: Vec<&str> = omitted.iter().map(|item| item.id.as_str()).collect();
        let note = format!("{queue}: {}", ids.join(", "));
        facts.insert("omitted".to_owned(), json!(ids));
        let gap_id = self.fresh_gap_id();
        let gap = Gap {
            gap_id: gap_id.clone(),
            queue: queue.to_owned(),
            more: 0,
            related: omitted.iter().any(|item| item.related),
            omitted,
            at: self.moment.call.now.clone(),
            seq: self.next_seq(),
            extra: Extra::new(),
        };
        self.session.gaps.push(gap);
        self.log("omitted", Some(gap_id.as_str()), Some(&note));
        facts.insert("gapId".to_owned(), json!(gap_id));
        self.merge_gaps();
    }

    /// A call mints one from its own digits; a hook's event may need more.
    fn fresh_gap_id(&mut self) -> GapId {
        let fresh = self.moment.fresh.gap();
        let is_used = self.session.gaps.iter().any(|gap| gap.gap_id == fresh);
        if is_used { self.numbered_gap_id().unwrap_or(fresh) } else { fresh }
    }

    fn numbered_gap_id(&mut self) -> Option<GapId> {
        let seq = self.next_seq();
        GapId::parse(&format!("gap_{seq:016x}")).ok()
    }

    /// Makes the two oldest notices of a queue one, until there are few enough.
    fn merge_gaps(&mut self) {
        let named = |session: &Session| session.gaps.iter().map(|gap| gap.omitted.len()).sum::<usize>();
        while self.session.gaps.len() > GAPS_MAX || named(&self.session) > GAP_IDS_ALL_MAX {
            if self.merge_two().is_none() {
                return;
            }
        }
    }

    fn merge_two(&mut self) -> Option<()> {
        let gaps = &self.session.gaps;
        let (first, second) = gaps.iter().enumerate().find_map(|(second, newer)| {
            let first = gaps.iter().take(second).position(|older| older.queue == newer.queue)?;
            Some((first, second))
        })?;
        let gap_id = self.numbered_gap_id()?;
        let newer = self.session.gaps.remove(second);
        let older = self.session.gaps.get_mut(first)?;
        older.omitted.extend(newer.omitted);
        let kept = older.omitted.len().min(GAP_IDS_MAX);
        let surplus = older.omitted.drain(kept..).count();
        older.more =
            older.more.saturating_add(newer.more).saturating_add(u64::try_from(surplus).unwrap_or(u64::MAX));
        older.gap_id = gap_id;
        older.related |= newer.related;
        older.extra.extend(newer.extra);
        Some(())
    }
}
