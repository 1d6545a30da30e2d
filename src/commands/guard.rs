//! One judged call on one session: locked, remembered, judged, committed, answered. Every verb of the continuation
//! guard goes through [`act`].

mod claim;
mod input;
mod queues;
mod session;
mod turn;

use std::path::PathBuf;

use crate::answer::Answer;
use crate::protocol::codes::Code;
use crate::protocol::guard::request::{Background, CronRequest, Notify, Relocate, Request};
use crate::protocol::guard::{Done, Moment, judge};
use crate::protocol::ids::Name;
use crate::protocol::requests::Seen;
use crate::protocol::row::ProcessRef;
use crate::protocol::verdict::{OwnerLife, Said};
use crate::state::{Access, LockPlan, StateError, Store, Transaction, Writes};

use super::context::Context;
use super::evidence;
use super::failure::Failure;
use super::owner;
use super::repeats::{self, Grant, digest};
use super::transact::{self, begin};

pub(super) use claim::{claim, release};
pub(super) use queues::{background, cron, gaps, notify};
pub(super) use session::{prompt, session};
pub(super) use turn::{drain, end_turn, say, todo};

/// How often a session that another call makes at the same moment is looked at again.
const ROUNDS_MAX: usize = 8;

/// Asks these requests of a session, all in one commit, and answers the last one.
pub(crate) fn act(context: &Context, session: &Name, requests: &[Request]) -> Result<Answer, Failure> {
    act_for(context, session, requests, None)
}

/// The same of an agent's hook, which nobody repeats under its request id.
pub(crate) fn act_unremembered(
    context: &Context,
    session: &Name,
    requests: &[Request],
) -> Result<Answer, Failure> {
    GuardCall { context, session, requests, pid: None, remembers: false }.act()
}

/// The same of a call that names the process it speaks for. That process is looked at once the call is known to be
/// new, because a repeated call must get its first answer after the process is gone.
fn act_for(
    context: &Context,
    session: &Name,
    requests: &[Request],
    pid: Option<u32>,
) -> Result<Answer, Failure> {
    GuardCall { context, session, requests, pid, remembers: true }.act()
}

impl GuardCall<'_> {
    fn act(&self) -> Result<Answer, Failure> {
        // A session that there is not is refused without a trace: only opening one makes a root (O10).
        let access = if self.opens() { Access::Write } else { Access::Change };
        let store = match Store::open(&self.context.root, access) {
            Ok(store) => store,
            Err(StateError::NoRoot { .. }) => return self.without_root(),
            Err(error) => return Err(error.into()),
        };
        for _ in 1..ROUNDS_MAX {
            match self.round(&store) {
                Err(Failure::State(StateError::Raced { .. })) => {}
                done => return done,
            }
        }
        self.round(&store)
    }
}

struct GuardCall<'a> {
    context: &'a Context,
    session: &'a Name,
    requests: &'a [Request],
    pid: Option<u32>,
    remembers: bool,
}

impl GuardCall<'_> {
    fn opens(&self) -> bool {
        matches!(self.requests.first(), Some(Request::Open(_)))
    }

    /// What was asked, in the rules' own words. Another version of the program may word it otherwise, and then takes
    /// a repeat for another call, which is refused and never done twice.
    fn digest(&self) -> String {
        let asked = format!("{:?}", self.requests);
        let pid = self.pid.map(|pid| pid.to_string()).unwrap_or_default();
        digest(&["guard", self.context.command, self.session.as_str(), &asked, &pid])
    }

    fn judge(
        &self,
        known: Option<&crate::protocol::guard::session::Session>,
        requests: &[Request],
        life: &dyn Fn(&ProcessRef) -> OwnerLife,
    ) -> Result<Done, Failure> {
        let context = self.context;
        let moment = Moment { call: &context.call(), boot: &context.boot(), fresh: &context.fresh()?, life };
        Ok(judge(known, self.session, requests, &moment))
    }

    fn without_root(&self) -> Result<Answer, Failure> {
        let done = self.judge(None, self.requests, &|_| OwnerLife::Unknown)?;
        match done.answer {
            Err(refusal) => Err(Failure::Refused(refusal)),
            Ok(_) => Err(Failure::internal("a session was granted something without a root")),
        }
    }

    fn round(&self, store: &Store) -> Result<Answer, Failure> {
        let plan = LockPlan { session: Some(self.session.clone()), ..LockPlan::default() };
        let transaction = begin(self.context, store, &plan, &|| Ok(()))?;
        crate::seam::pause("locked-session");
        let digest = self.digest();
        let known = transaction.session();
        let seen = known.map_or(Seen::Never, |known| known.requests.seen(&self.context.request_id, &digest));
        match seen {
            Seen::Never => {}
            Seen::Before(record) => {
                let answer = repeats::recalled(self.context, record);
                transact::rewrite_session(self.context, &transaction)?;
                return answer;
            }
            Seen::ForAnother(record) => return Err(repeats::reused(self.context, record)),
        }
        let requests = self.with_process()?;
        let life = |process: &ProcessRef| evidence::process_life(self.context, store, process).0;
        let done = self.judge(known, &requests, &life)?;
        self.finish(transaction, done, &digest)
    }

    fn with_process(&self) -> Result<Vec<Request>, Failure> {
        let mut requests = self.requests.to_vec();
        if let Some(pid) = self.pid {
            let process = owner::process(self.context, pid)?;
            requests.iter_mut().filter_map(process_of).for_each(|place| *place = Some(process.clone()));
        }
        Ok(requests)
    }

    /// Commits what has changed, and makes durable what an answer that changes nothing rests on.
    fn finish(&self, transaction: Transaction<'_>, done: Done, digest: &str) -> Result<Answer, Failure> {
        let Done { session, answer, authorises } = done;
        match (session, &answer) {
            (Some(mut session), answer) => {
                let (said, hint) = match answer {
                    Ok(said) => (said.clone(), None),
                    Err(refusal) => (
                        Said {
                            code: refusal.code,
                            message: refusal.message.clone(),
                            facts: refusal.facts.clone(),
                        },
                        refusal.hint.clone(),
                    ),
                };
                let grant = Grant { authorises, hint, ..Grant::default() };
                if self.remembers {
                    session.remember(repeats::record(self.context, digest, &said, &grant));
                }
                let writes = Writes { session: Some(*session), ..Writes::default() };
                transact::commit(self.context, transaction, writes)?;
            }
            (None, Ok(_)) => transact::rewrite_session(self.context, &transaction)?,
            (None, Err(_)) => {}
        }
        let said = answer?;
        let mut answer = Answer::new(self.context.command, said.code, said.message);
        answer.fields = said.facts;
        Ok(answer)
    }
}

/// Where a request keeps the process it speaks for.
fn process_of(request: &mut Request) -> Option<&mut Option<ProcessRef>> {
    match request {
        Request::Submit(submit) => Some(&mut submit.process),
        Request::Claim(claim) => Some(&mut claim.process),
        Request::EndTurn(end) => Some(&mut end.process),
        Request::Start(_, process)
        | Request::Relocate(Relocate::Begin { process, .. })
        | Request::Background(Background::Start { process, .. })
        | Request::Notify(Notify::Take { process, .. })
        | Request::Cron(CronRequest::Take { process, .. }) => Some(process),
        _ => None,
    }
}

/// A path as a session keeps it. An answer could not carry another one back.
fn utf8(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        Failure::usage(format!("the path `{}` is not UTF-8", std::path::Path::new(&path).display()))
    })
}

/// Whether a failure says that the call itself is wrong.
fn is_usage(failure: &Failure) -> bool {
    matches!(failure, Failure::Call { code, .. } if code.exit() == Code::Usage.exit())
}
