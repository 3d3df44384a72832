//! `agentwire claude`: a drop-in replacement for the `claude` program.

pub(crate) mod argv;
pub(crate) mod output;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;

use agentwire_dialects::claude::render::VERSION;
use agentwire_dialects::claude::{ClaudeFront, FrontOptions};
use agentwire_dialects::program;
use agentwire_dialects::program::ClaudeFlags;
use agentwire_protocol::{AgentType, ErrorCode, Json, NewSession, Prompt, SessionId};
use agentwire_server::{Connection, Terms, serve};
use agentwire_sessions::Hub;
use agentwire_sessions::settings::StoreKind;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use self::argv::{Action, InputFormat, Invocation, OutputFormat, Refused, Resume};
use self::output::Output;
use crate::args::Global;
use crate::commands::run::prompt::has_input;
use crate::drive::Signals;
use crate::failure::Failure;
use crate::{engine, print, settings};

/// How many bytes may wait to be converted to the output format.
const PIPE: usize = 64 << 10;

pub(crate) fn run(
    global: &Global,
    args: impl Iterator<Item = OsString>,
) -> Result<ExitCode, Failure> {
    match converse(global, args) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(Ended::Refused(refused)) => {
            print::aside(&refused.message);
            Ok(ExitCode::from(refused.exit))
        }
        Err(Ended::Failed(failure)) => Err(failure),
    }
}

enum Ended {
    Refused(Refused),
    Failed(Failure),
}

impl From<Refused> for Ended {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl<E: Into<Failure>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn converse(global: &Global, args: impl Iterator<Item = OsString>) -> Result<u8, Ended> {
    let mut is_short = false;
    let given = match argv::parse(args)? {
        Action::Version => {
            print::line(&format!("{VERSION} (Claude Code)"))?;
            return Ok(0);
        }
        Action::Help { is_short: short } => {
            is_short = short;
            None
        }
        Action::Session(given) => Some(given),
    };
    let mut loaded = settings::load(global)?;
    let engine = &loaded.engine;
    let Some(given) = given else {
        let agent = loaded.agent.or_else(|| engine::installed(engine));
        let agent = agent.unwrap_or_else(engine::built_in);
        print::line(argv::help(agent, is_short).trim_end())?;
        return Ok(0);
    };
    let agent =
        loaded.agent.unwrap_or_else(|| engine::installed_or_built_in(engine, "AGENTWIRE_AGENT"));
    let here = std::env::current_dir()?;
    let asked = given.with(agent, &here)?;
    if asked.no_session_persistence {
        loaded.engine.store = StoreKind::Memory;
    }
    let prompt = prompt(&asked)?;
    let runtime = engine::runtime()?;
    let code = runtime.block_on(async {
        let hub = engine::hub(loaded).await?;
        let code = speak(&hub, agent, asked, prompt).await;
        hub.shutdown().await;
        code
    });
    // A thread that waits for stdin must not keep the program from ending.
    runtime.shutdown_background();
    code
}

/// The prompt on the command line or stdin; `None` if prompts arrive as messages.
fn prompt(asked: &Invocation) -> Result<Option<Prompt>, Ended> {
    asked.refuse_screen(io::stdin().is_terminal())?;
    if asked.input == InputFormat::StreamJson {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    if piped(asked.prompt.is_some())? {
        io::stdin().lock().read_to_end(&mut bytes)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = asked.text_prompt(text.trim_end_matches(['\r', '\n']))?;
    Ok(Some(Prompt::text(text)))
}

/// Whether stdin has input. If there is a prompt already, stdin may stay open without any; then the
/// wait is short.
fn piped(has_prompt: bool) -> io::Result<bool> {
    if io::stdin().is_terminal() {
        return Ok(false);
    }
    if !has_prompt {
        return Ok(true);
    }
    has_input()
}

async fn speak(
    hub: &Hub,
    agent: AgentType,
    asked: Invocation,
    prompt: Option<Prompt>,
) -> Result<u8, Ended> {
    let options = FrontOptions {
        asks_client: asked.asks_client,
        partial: asked.include_partial,
        replays: asked.replay_user_messages,
        may_bypass: asked.may_bypass,
        pid: std::process::id(),
        new: session(hub, agent, &asked, prompt).await?,
    };
    let mut front = ClaudeFront::new(options);
    let mut signals = Signals::new()?;
    let pool = hub.log().budget().clients.clone();
    let mut is_open = false;
    // After the end of input, the turn still runs to its end.
    let code = match (asked.input, asked.output) {
        (InputFormat::StreamJson, _) => {
            let connection = Connection::lines(tokio::io::stdin(), tokio::io::stdout(), pool);
            serve(hub, connection, &mut front, Terms::of_parent(None), signals.end()).await
        }
        (InputFormat::Text, OutputFormat::StreamJson) => {
            let connection = Connection::lines(tokio::io::empty(), tokio::io::stdout(), pool);
            serve(hub, connection, &mut front, Terms::of_parent(None), signals.end()).await
        }
        (InputFormat::Text, OutputFormat::Text | OutputFormat::Json) => {
            let (write, read) = tokio::io::duplex(PIPE);
            let connection = Connection::lines(tokio::io::empty(), write, pool);
            let (code, written) = tokio::join!(
                serve(hub, connection, &mut front, Terms::of_parent(None), signals.end()),
                tell(BufReader::new(read), &asked),
            );
            is_open = written?;
            code
        }
    };
    if let Some(failure) = front.failure() {
        // The real program leaves the line open. On a terminal, the error gets its own line.
        if is_open && io::stdout().is_terminal() && io::stderr().is_terminal() {
            print::aside("");
        }
        print::error(failure);
    }
    Ok(code)
}

/// Converts the messages to the output format. Whether the last line has no newline.
async fn tell(
    mut messages: BufReader<tokio::io::DuplexStream>,
    asked: &Invocation,
) -> io::Result<bool> {
    let mut output = Output::new(asked, io::stdout());
    let mut line = String::new();
    while messages.read_line(&mut line).await? > 0 {
        output.line(line.trim_end_matches('\n'))?;
        line.clear();
    }
    output.finish()
}

async fn session(
    hub: &Hub,
    agent: AgentType,
    asked: &Invocation,
    prompt: Option<Prompt>,
) -> Result<NewSession, Ended> {
    let mut new = NewSession {
        prompt,
        id: asked.session_id.as_deref().map(SessionId::from),
        fork: asked.fork,
        config: asked.config.clone(),
        // Only the command line and `initialize` configure the session, as with the real program.
        replaces_config: true,
        has_native_hooks: true,
        ..NewSession::of(agent)
    };
    // Subagents' text is forwarded on request only; `initialize` may request it too.
    let options = new.config.native_options.get_or_insert_default();
    options.insert("forwardSubagentText".to_owned(), Json::of(&asked.forward_subagent_text));
    match &asked.resume {
        None => {}
        Some(Resume::Continue) => {
            let here = std::env::current_dir()?;
            // If there is none, the real program starts one.
            new.resume = hub.latest(agent, &here).await?;
            new.fork &= new.resume.is_some();
        }
        Some(Resume::Session(id)) => match hub.summary(&SessionId::from(id.as_str())).await {
            Ok(session) => new.resume = Some(session.id),
            // It may be a session that the real program started.
            Err(error)
                if error.code == ErrorCode::SessionNotFound
                    && program(agent).claude_flags == ClaudeFlags::All =>
            {
                new.native_resume = Some(id.clone());
            }
            Err(error) if error.code == ErrorCode::SessionNotFound => {
                new.resume = Some(SessionId::from(id.as_str()));
            }
            Err(error) => return Err(error.into()),
        },
    }
    Ok(new)
}
