//! `agentwire run`: runs an agent on a prompt and shows its work.

pub(crate) mod prompt;

use agentwire_protocol::session::{OnLimit, SystemPrompt};
use agentwire_protocol::{AgentType, GatewayError, Prompt, SessionConfig, SessionId};
use agentwire_sessions::{Hub, NewSession};

use crate::args::{Global, Run};
use crate::drive::{Drive, DriveResult, Signals};
use crate::failure::Failure;
use crate::screen::{Screen, Shape};
use crate::source::Events;
use crate::terminal::Terminal;
use crate::{engine, settings};

pub(crate) fn run(global: &Global, args: &Run) -> Result<(), Failure> {
    let loaded = settings::load(global)?;
    let named = args.agent.or(loaded.agent);
    let runtime = engine::runtime()?;
    let result = runtime.block_on(async {
        let hub = engine::hub(loaded).await?;
        let ended = talk(&hub, args, named).await;
        // If the user quit early, the rest ends with this process.
        if !ended.as_ref().is_ok_and(|ended| ended.left_early) {
            hub.shutdown().await;
        }
        ended?.verdict
    });
    // A thread that waits for a reader must not keep the program from ending.
    runtime.shutdown_background();
    result
}

async fn talk(hub: &Hub, args: &Run, named: Option<AgentType>) -> Result<DriveResult, Failure> {
    let (resume, agent, after) = match &args.resume {
        Some(prefix) => {
            let session = hub.summary(&hub.find(prefix).await?).await?;
            let agent = args.agent.unwrap_or(session.agent_type);
            (Some(session.id), agent, session.last_seq)
        }
        None => (
            None,
            named.unwrap_or_else(|| engine::installed_or_built_in(hub.settings(), "`-a`")),
            0,
        ),
    };
    let text = prompt::read_for(agent, args.prompt.as_deref())?;
    let screen = Screen::new(Shape::of(args.output, Shape::Talk));
    let terminal = if screen.is_seen() { Terminal::open() } else { None };
    // From now on a signal ends the session, not the program.
    let signals = Signals::new()?;
    let session = start(hub, agent, resume, text, config(args, terminal.is_some())).await?;
    let cursor = hub.follow(session.id(), after);
    let drive = Drive::new(Events::of(cursor), after, screen, signals);
    Ok(drive.running(session, terminal).run().await)
}

async fn start(
    hub: &Hub,
    agent: AgentType,
    resume: Option<SessionId>,
    text: String,
    config: SessionConfig,
) -> Result<agentwire_sessions::SessionHandle, GatewayError> {
    let prompt = Some(Prompt::text(text));
    hub.start(NewSession { prompt, resume, config, ..NewSession::of(agent) }).await
}

fn config(args: &Run, can_ask: bool) -> SessionConfig {
    let rules = |rules: &Vec<String>| (!rules.is_empty()).then(|| rules.clone());
    let is_limited = args.max_turns.is_some() || args.max_budget.is_some();
    SessionConfig {
        working_directory: args.directory.clone(),
        model: args.model.clone(),
        approval_mode: args.approval,
        sandbox_mode: args.sandbox,
        allowed_tools: rules(&args.allow),
        blocked_tools: rules(&args.block),
        trust: args.trust.then_some(true),
        max_turns: args.max_turns,
        driver: args.driver.clone(),
        system_prompt: args.system.clone().map(SystemPrompt::Text),
        max_budget_usd: args.max_budget,
        // Without a terminal to ask on, a limit ends the turn.
        on_limit: (is_limited && !can_ask).then_some(OnLimit::Fail),
        ..SessionConfig::default()
    }
}
