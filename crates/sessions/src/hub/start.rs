//! Starts a session here: once per key, once per id, and watched until it ends.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Setup};
use agentwire_dialects::driver;
use agentwire_dialects::tape::Tape;
use agentwire_protocol::{
    ErrorCode, GatewayError, NewSession, Prompt, SessionConfig, SessionId, SessionState,
};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::idempotency::{Key, KeyGuard};
use super::plan::{self, SessionSetup, taken};
use super::{Hub, SessionStart, lost};
use crate::bridge::Bridge;
use crate::clock;
use crate::metrics::Tally;
use crate::own_dirs;
use crate::process::check_descriptors;
use crate::session::policy::Policy;
use crate::session::{
    Actor, Advisor, Core, DerivedState, Hooks, Journal, Mark, Origin, Parts, Plan, Refusal,
    SessionHandle, Structured, check_prompt, storage,
};
use crate::trust::Wish;

/// What remains to be done when a session's actor has ended.
struct ActorCleanup {
    id: SessionId,
    mark: Mark,
    place: OwnedSemaphorePermit,
    /// The key of a start that was refused because the store was full.
    refused: oneshot::Receiver<KeyGuard>,
}

/// A session that can be created: everything that could be refused was checked, and nothing is stored yet.
struct PlannedSession {
    setup: SessionSetup,
    plan: Plan,
    policy: Policy,
    structured: Option<Structured>,
    hooks: Hooks,
    bridge: Option<Bridge>,
    rest: Option<Duration>,
}

impl Hub {
    pub(super) async fn launch(
        &self,
        new: NewSession,
        once: Option<(&Key, KeyGuard)>,
    ) -> Result<SessionHandle, GatewayError> {
        self.check_open()?;
        self.check_room()?;
        let (key, guard) = once.unzip();
        let place = self.validate(&new)?;
        let planned = self.plan(&new).await?;
        let (handle, parts) = self.create(planned, &new, key).await?;
        let agent = parts.plan.agent;
        self.start_actor(&handle, parts, new.prompt, place, guard).await?;
        let session = handle.id().as_str();
        tracing::info!(session, agent = agent.as_str(), "session started");
        self.metrics().sessions_started.of(agent).add(1);
        Ok(handle)
    }

    /// Refuses contradictory options, and a session beyond the limits.
    fn validate(&self, new: &NewSession) -> Result<OwnedSemaphorePermit, GatewayError> {
        plan::check(new)?;
        let place = Arc::clone(&self.shared.places).try_acquire_owned().map_err(|_| {
            let limit = self.shared.settings.sessions();
            let message = format!(
                "{limit} sessions are already running; stop one, or raise `sessions` in [limits]"
            );
            GatewayError::new(ErrorCode::Overloaded, message)
        })?;
        check_descriptors()?;
        Ok(place)
    }

    /// Decides what the session runs with. What cannot be started is refused before anything is stored.
    async fn plan(&self, new: &NewSession) -> Result<PlannedSession, GatewayError> {
        let setup = self.session_setup(new).await?;
        let SessionSetup { record, config, origin, .. } = &setup;
        let agent = record.summary.agent_type;
        let dialect = driver(agent, config.driver.as_deref())?;
        if let Some(prompt) = &new.prompt {
            check_prompt(prompt, agent, dialect)?;
        }
        let must_rest = new.goes_on() && dialect.capabilities().resumes_next_minute;
        let rest = must_rest.then(|| plan::rest(record, &clock::now())).flatten();
        let (bridge, offers) = self.bridge(dialect, config).await?;
        let plan = Plan {
            offers,
            agent,
            dialect,
            command: self.command(agent),
            contain: Arc::clone(&self.shared.contain),
            settings: Arc::clone(&self.shared.settings),
            pinned_dirs: Arc::clone(&self.shared.pinned_dirs),
            budget: self.shared.log.budget().clone(),
        };
        let policy = Policy::new(dialect.tools(), config, std::env::home_dir().as_deref())?
            .guarding(own_dirs::files(&self.shared.settings));
        let structured = Structured::new(dialect.capabilities(), config)?;
        let hooks = Hooks::new(agent.as_str(), dialect.capabilities(), config)?;
        let launch = plan.launch(config, origin, Some(record.summary.id.as_str()), None)?;
        plan.program(config, &launch).await?;
        Ok(PlannedSession { setup, plan, policy, structured, hooks, bridge, rest })
    }

    /// Registers the session as running here, and collects the parts of its actor.
    async fn create(
        &self,
        planned: PlannedSession,
        new: &NewSession,
        key: Option<&Key>,
    ) -> Result<(SessionHandle, Parts), GatewayError> {
        let PlannedSession { setup, plan, policy, structured, hooks, bridge, rest } = planned;
        let SessionSetup { record, config, origin, forked_from } = setup;
        let (id, after) = (record.summary.id.clone(), record.summary.last_seq);
        let (told, summary) = watch::channel(record.summary.clone());
        let (handle, inbox) = SessionHandle::new(id.clone(), summary);
        self.enter(&handle, new.goes_on()).await?;
        // From here on, a shutdown sees this session; if it came too late for that, it does not start.
        if let Err(error) = self.check_open() {
            self.shared.leave(&id, &handle.mark());
            return Err(error);
        }
        let (agent, dialect) = (plan.agent, plan.dialect);
        let (metrics, settings) = (self.shared.log.metrics(), &self.shared.settings);
        let core = Core::new(
            Journal::new(id.clone(), after),
            DerivedState::new(record, dialect.tools(), dialect.capabilities().folds_prompts),
            hooks,
            Some(Tally::new(Arc::clone(metrics), Arc::clone(settings), agent)),
            Some(Advisor(dialect)),
        );
        let parts = Parts {
            tape: tape(dialect, plan.reachable(&config), &origin, &id),
            core: core
                .judging(policy, dialect.capabilities().permission_updates)
                .forming(structured),
            plan,
            config,
            log: self.shared.log.clone(),
            writer: self.shared.log.open(id.clone(), after),
            commands: inbox,
            summary: told,
            origin,
            forked_from,
            bridge,
            rest,
            wish: Wish::of(&new.config, settings.defaults.trust),
            keys: key.map(|key| key.used_for(&id)).into_iter().collect(),
        };
        // Having no receivers is fine.
        let _ = self.shared.starts.send(SessionStart { session: id, after });
        Ok((handle, parts))
    }

    /// Runs the session, and waits until it is durable and its agent runs.
    async fn start_actor(
        &self,
        handle: &SessionHandle,
        parts: Parts,
        prompt: Option<Prompt>,
        place: OwnedSemaphorePermit,
        guard: Option<KeyGuard>,
    ) -> Result<(), GatewayError> {
        let (started, start) = oneshot::channel();
        let (keep, refused) = oneshot::channel();
        let actor = Actor::new(parts).run(prompt, started);
        // Not the handle itself: the session ends when nobody who could command it is left.
        let (id, mark) = (handle.id().clone(), handle.mark());
        self.clean_up_after(actor, ActorCleanup { id, mark, place, refused });
        match start.await.map_err(lost)? {
            Ok(()) => Ok(()),
            Err(Refusal::NoRoom(error)) => {
                if let Some(guard) = guard {
                    guard.refuse();
                    let _ = keep.send(guard);
                }
                Err(error)
            }
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    pub(super) fn check_room(&self) -> Result<(), GatewayError> {
        match self.shared.log.stuck() {
            Some(error) => {
                tracing::warn!(%error, "the store accepts no events");
                Err(storage(&error))
            }
            None => Ok(()),
        }
    }

    /// Registers a session as running here: in no other process, and only once in this one.
    async fn enter(&self, handle: &SessionHandle, goes_on: bool) -> Result<(), GatewayError> {
        let id = handle.id();
        match self.shared.live().entry(id.clone()) {
            // Another start with this id came first, and is not in the log yet.
            Entry::Occupied(_) if !goes_on => return Err(taken(id)),
            Entry::Occupied(first) if first.get().summary().state != SessionState::Ended => {
                let message = format!("session {id} was just resumed; attach to it, or fork it");
                return Err(GatewayError::new(ErrorCode::Conflict, message));
            }
            Entry::Occupied(mut ended) => drop(ended.insert(handle.clone())),
            Entry::Vacant(free) => drop(free.insert(handle.clone())),
        }
        if !goes_on {
            return Ok(());
        }
        let claimed = self.claim(id).await;
        if claimed.is_err() {
            self.shared.leave(id, &handle.mark());
        }
        claimed
    }

    /// Makes this process the owner of a session that has ended.
    async fn claim(&self, id: &SessionId) -> Result<(), GatewayError> {
        let Some(owner) = self.owner_name() else { return Ok(()) };
        let session = id.clone();
        let claimed = self.shared.write_store(move |store| {
            let record = store.session(&session)?;
            let before = record.as_ref().and_then(|record| record.owner.as_deref());
            // A process that died before the session started left its name as owner; so may this process
            // have.
            let is_free =
                before.is_none_or(|before| before == owner.as_str() || !store.is_alive(before));
            Ok(is_free && store.claim(&session, before, &owner)?)
        });
        match claimed.await? {
            true => Ok(()),
            false => {
                let message = format!("session {id} was just claimed by another process");
                Err(GatewayError::new(ErrorCode::Conflict, message))
            }
        }
    }

    /// Runs a session to its end, and cleans up afterwards.
    fn clean_up_after(
        &self,
        actor: impl Future<Output = bool> + Send + 'static,
        last: ActorCleanup,
    ) {
        let shared = Arc::downgrade(&self.shared);
        let lanes = Arc::clone(&self.shared.lanes);
        let running = lanes.spawn(actor);
        tokio::spawn(async move {
            let ActorCleanup { id, mark, place, refused } = last;
            // A session that panics affects no other; its end is reported like that of a crash.
            let is_reported = running.await.unwrap_or(false);
            drop(lanes);
            drop(place);
            let refused = refused.await.ok();
            let Some(shared) = shared.upgrade() else { return };
            // It may already run again.
            if !is_reported && shared.live().get(&id).is_some_and(|now| now.has(&mark)) {
                shared.abandon(&id).await;
            }
            shared.leave(&id, &mark);
            if let Some(guard) = refused {
                let key = guard.key.clone();
                if let Err(error) = shared.write_store(move |store| store.forget_key(&key)).await {
                    tracing::warn!(%error, "failed to release the idempotency key");
                }
            }
        });
    }
}

fn tape(
    dialect: &'static dyn AgentDialect,
    config: SessionConfig,
    origin: &Origin,
    id: &SessionId,
) -> Tape {
    let setup = Setup {
        config,
        resume: origin.resume.clone(),
        fork: origin.fork,
        native_session_id: Some(id.as_str().to_owned()),
        recording: false,
    };
    Tape::new(dialect, &setup)
}
