//! The model: a server on loopback that plays a script and remembers what it was asked.
//!
//! An agent asks for more than the turns of its conversation: sub-agents, titles, notes for its memory. A request
//! belongs to the conversation if it offers the tool that only the conversation has; only those take their turns
//! from the script. A sub-agent's requests take theirs from a script of their own.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http;
use crate::wire::Wire;

/// How long anything of a real agent may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// More turns than any test wants. An agent that is brought back without end is let go here.
const TURNS_MAX: usize = 40;

/// One turn of the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// What it says.
    pub(crate) text: String,
    /// The tools it calls.
    pub(crate) calls: Vec<(String, Value)>,
    /// The provider fails instead, with this status.
    pub(crate) failure: Option<u16>,
    /// The answer waits until this is opened.
    pub(crate) gate: Option<Gate>,
}

impl Turn {
    /// A turn that says this, and stops.
    pub(crate) fn says(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// A turn that calls a tool.
    pub(crate) fn calls(tool: &str, input: Value) -> Self {
        Self::says("I call a tool.").and_calls(tool, input)
    }

    /// The same with one call more.
    pub(crate) fn and_calls(mut self, tool: &str, input: Value) -> Self {
        self.calls.push((tool.to_owned(), input));
        self
    }

    /// A turn that the provider fails, for good.
    pub(crate) fn fails() -> Self {
        Self { failure: Some(400), ..Self::default() }
    }

    /// The same, held back until the gate is opened.
    pub(crate) fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

/// What a turn can be held back by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets the turn go.
    pub(crate) fn open(&self) {
        *held(&self.0.0) = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = held(&self.0.0);
        drop(self.0.1.wait_timeout_while(open, PATIENCE, |open| !*open));
    }
}

/// A request for a turn.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Whether it belongs to the conversation.
    pub(crate) main: bool,
    /// Every text after the model's last turn.
    pub(crate) newest: String,
}

/// The running server. Dropping it lets every held turn go and ends it.
pub(crate) struct Model {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    main_tool: &'static str,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    script: Vec<Turn>,
    sub_script: Vec<Turn>,
    asked: Vec<Asked>,
    n_played: usize,
    n_sub_played: usize,
    ended: bool,
}

/// A lock whose holder has failed still holds what the failing test wants to see.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model {
    /// A model that plays these turns, and then says that it still works, for ever. `main_tool` is what only the
    /// requests of the conversation offer.
    pub(crate) fn plays(main_tool: &'static str, script: Vec<Turn>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Mutex::new(State { script, ..State::default() });
        let shared = Arc::new(Shared { main_tool, state, changed: Condvar::new() });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if held(&served.state).ended {
                    return;
                }
                let (shared, Ok(stream)) = (Arc::clone(&served), stream) else { continue };
                // An agent that is killed leaves its connections; that is no failure of the model.
                std::thread::spawn(move || drop(serve(&shared, &stream)));
            }
        });
        Self { port, shared }
    }

    /// Plays these turns for sub-agents.
    pub(crate) fn gives_sub_agents(&self, script: Vec<Turn>) {
        held(&self.shared.state).sub_script = script;
    }

    /// Plays these turns from the next one on.
    pub(crate) fn now_plays(&self, script: Vec<Turn>) {
        let mut state = held(&self.shared.state);
        state.script = script;
        state.n_played = 0;
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Every request of the conversation so far, in order.
    pub(crate) fn turns(&self) -> Vec<Asked> {
        held(&self.shared.state).asked.iter().filter(|asked| asked.main).cloned().collect()
    }

    /// Waits until the conversation has asked for its `n`-th turn.
    #[track_caller]
    pub(crate) fn wait_for_turn(&self, n: usize) {
        let few = |state: &mut State| state.asked.iter().filter(|asked| asked.main).count() < n;
        let state = held(&self.shared.state);
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, few);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "the agent never asked for turn {n}: {:?}", state.asked);
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let mut state = held(&self.shared.state);
        state.ended = true;
        let all = state.script.iter().chain(&state.sub_script);
        all.filter_map(|turn| turn.gate.as_ref()).for_each(Gate::open);
        drop(state);
        // The listening thread looks at `ended` once more.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

fn serve(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    let Some(request) = http::read(stream)? else { return Ok(()) };
    let Some(wire) = Wire::of(&request.path) else {
        let told = if request.path.contains("ount") {
            json!({"input_tokens": 1, "totalTokens": 1})
        } else {
            json!({})
        };
        return http::answer(stream, 200, &told);
    };
    let (turn, n) = shared.turn_for(wire, &request.body);
    if let Some(gate) = &turn.gate {
        gate.pass();
    }
    match turn.failure {
        Some(status) => {
            let error = json!({"type": "api_error", "message": "the model's script says so", "code": status});
            http::answer(stream, status, &json!({"type": "error", "error": error}))
        }
        None => http::stream(stream, &wire.frames(&turn, n)),
    }
}

impl Shared {
    /// The turn that answers this request, and how many have been asked for.
    fn turn_for(&self, wire: Wire, body: &Value) -> (Turn, usize) {
        let tools = Wire::tools(body);
        let main = tools.iter().any(|tool| tool == self.main_tool);
        let mut state = held(&self.state);
        state.asked.push(Asked { main, newest: wire.newest(body) });
        let n = state.asked.len();
        self.changed.notify_all();
        let turn = if main {
            state.n_played += 1;
            state.script.get(state.n_played - 1)
        } else if tools.is_empty() {
            None
        } else {
            state.n_sub_played += 1;
            state.sub_script.get(state.n_sub_played - 1)
        };
        let turn = turn.cloned().unwrap_or_else(|| Turn::says(&format!("I am still at work, {n}.")));
        (if n > TURNS_MAX { Turn::fails() } else { turn }, n)
    }
}
