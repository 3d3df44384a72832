//! All sessions of this process: starts them, finds them, lists them, ends them.

mod beginning;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Setup};
use agentwire_dialects::driver;
use agentwire_dialects::tape::Tape;
use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, NewSession, SessionConfig, SessionId,
    SessionState, SessionSummary,
};
use tokio::sync::{Semaphore, broadcast, oneshot, watch};
use tokio::task::JoinSet;

use self::beginning::{Beginning, taken};
use crate::figures::{Figures, Tally};
use crate::log::{Cursor, EventLog};
use crate::owner::Owner;
use crate::process::{Contain, check_descriptors};
use crate::session::policy::Policy;
use crate::session::{
    Actor, Book, Core, Hooks, Journal, Origin, Parts, Plan, SessionHandle, check_prompt, storage,
};
use crate::settings::{Settings, StoreKind};
use crate::store::memory::Memory;
use crate::store::sqlite::Sqlite;
use crate::store::{Filter, Record, Store};
use crate::sweep;

/// How long sessions may take to end when the hub does.
const FAREWELL: Duration = Duration::from_secs(8);

/// How many sessions may hold a large line at once. One line takes up to 64 MiB, and as much again a
/// few times while it is translated and kept.
const LARGE_LINES: usize = 4;

/// How many starts wait for whoever wants to hear of them; who is slower misses some.
const STARTS: usize = 256;

/// All sessions of this process.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    log: EventLog,
    owner: Option<Owner>,
    contain: Arc<Contain>,
    room: Arc<Semaphore>,
    /// How many more sessions may run.
    places: Arc<Semaphore>,
    live: Mutex<HashMap<SessionId, SessionHandle>>,
    starts: broadcast::Sender<Started>,
}

/// A session that has started here.
#[derive(Clone, Debug)]
pub struct Started {
    /// Which.
    pub session: SessionId,
    /// The number of its last event before it did.
    pub after: u64,
}

impl Hub {
    /// Opens the log and closes what a process that died left open.
    pub async fn open(settings: Settings) -> Result<Self, GatewayError> {
        let opened = tokio::task::spawn_blocking(move || {
            let store = open_store(&settings)?;
            let owner = match settings.store {
                StoreKind::Sqlite => Some(Owner::claim(&settings.data_dir).map_err(|error| {
                    let path = settings.data_dir.display();
                    GatewayError::new(
                        ErrorCode::Internal,
                        format!("failed to lock {path}: {error}; is it yours to write?"),
                    )
                })?),
                StoreKind::Memory => None,
            };
            if let Some(owner) = &owner {
                sweep::sweep(&*store, &settings.data_dir, owner.name())
                    .map_err(|error| storage(&error))?;
            }
            Ok::<_, GatewayError>((settings, store, owner))
        });
        let (settings, store, owner) = opened.await.map_err(lost)??;
        let contain = Contain::probe(settings.keeper.clone()).await;
        Ok(Self {
            shared: Arc::new(Shared {
                log: EventLog::new(store),
                places: Arc::new(Semaphore::new(settings.sessions())),
                settings: Arc::new(settings),
                owner,
                contain: Arc::new(contain),
                room: Arc::new(Semaphore::new(LARGE_LINES)),
                live: Mutex::default(),
                starts: broadcast::Sender::new(STARTS),
            }),
        })
    }

    /// What keeps agents' processes in.
    pub fn containment(&self) -> &Contain {
        &self.shared.contain
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The log of all sessions.
    pub fn log(&self) -> &EventLog {
        &self.shared.log
    }

    /// Starts a session, or goes on with one that is over. It is durable when this returns. Whoever does
    /// not wait for it leaves nothing half done.
    pub async fn start(&self, new: NewSession) -> Result<SessionHandle, GatewayError> {
        let hub = self.clone();
        tokio::spawn(async move { hub.begin(new).await }).await.map_err(lost)?
    }

    async fn begin(&self, new: NewSession) -> Result<SessionHandle, GatewayError> {
        if let Some(error) = self.shared.log.stuck() {
            tracing::warn!(%error, "the store takes no events");
            return Err(storage(&error));
        }
        let key = new.key.as_deref().map(create_key);
        if let Some(key) = &key
            && let Some(id) = self.remembered(key.clone()).await?
        {
            return self.session(&SessionId::from(id));
        }
        let wanted = key.clone();
        beginning::check(&new)?;
        let place = Arc::clone(&self.shared.places).try_acquire_owned().map_err(|_| {
            let limit = self.shared.settings.sessions();
            let message =
                format!("{limit} sessions run already; stop one, or raise `sessions` in [limits]");
            GatewayError::new(ErrorCode::Overloaded, message)
        })?;
        check_descriptors()?;
        let Beginning { record, config, origin, forked_from } = self.beginning(&new).await?;
        let (id, after) = (record.summary.id.clone(), record.summary.last_seq);
        let (told, summary) = watch::channel(record.summary.clone());
        let (handle, inbox) = SessionHandle::new(id.clone(), summary);
        let agent = record.summary.agent_type;
        let dialect = driver(agent, config.driver.as_deref())?;
        if let Some(prompt) = &new.prompt {
            check_prompt(prompt, agent, dialect)?;
        }
        let (bridge, offers) = self.bridge(dialect, &config).await?;
        let plan = Plan {
            offers,
            agent,
            dialect,
            command: self.command(agent),
            contain: Arc::clone(&self.shared.contain),
            settings: Arc::clone(&self.shared.settings),
            room: Arc::clone(&self.shared.room),
        };
        let policy = Policy::new(agent, &config, std::env::home_dir().as_deref())?;
        let hooks = Hooks::new(agent.as_str(), dialect.capabilities(), &config)?;
        // What cannot be started is refused before anything is kept.
        let launch = plan.launch(&config, &origin, Some(id.as_str()), Some(""))?;
        plan.program(&launch)?;
        if new.goes_on() {
            self.claim(&id).await?;
        }
        match self.live().entry(id.clone()) {
            // Another start with this id came first, and is not yet in the log.
            Entry::Occupied(_) if !new.goes_on() => return Err(taken(&id)),
            Entry::Occupied(mut ended) => drop(ended.insert(handle.clone())),
            Entry::Vacant(free) => drop(free.insert(handle.clone())),
        }
        let parts = Parts {
            tape: tape(dialect, plan.reachable(&config), &origin, &id),
            core: Core::new(
                Journal::new(id.clone(), record.summary.last_seq),
                Book::new(record.clone(), dialect.capabilities().folds_prompts),
                hooks,
                Some(Tally::new(
                    Arc::clone(self.shared.log.figures()),
                    Arc::clone(&self.shared.settings),
                    agent,
                )),
            ),
            plan,
            config,
            policy,
            log: self.shared.log.clone(),
            writer: self.shared.log.open(id.clone(), record.summary.last_seq),
            commands: inbox,
            summary: told,
            origin,
            forked_from,
            bridge,
            keys: key.into_iter().map(|key| (key, id.as_str().to_owned())).collect(),
        };
        // Nobody need listen.
        let _ = self.shared.starts.send(Started { session: id.clone(), after });
        let (started, start) = oneshot::channel();
        let actor = Actor::new(parts).run(new.prompt, started);
        let shared = Arc::downgrade(&self.shared);
        let own = handle.clone();
        tokio::spawn(async move {
            // A session that panics takes nobody with it; its end is told like that of a crash.
            let ended = tokio::spawn(actor).await;
            drop(place);
            let Some(shared) = shared.upgrade() else { return };
            if !ended.unwrap_or(false) {
                shared.abandon(&id).await;
            }
            let mut live = shared.live.lock().unwrap_or_else(PoisonError::into_inner);
            // It may run again already.
            if live.get(&id).is_some_and(|handle| handle.is_same(&own)) {
                live.remove(&id);
            }
        });
        match (start.await.map_err(lost)?, wanted) {
            (Ok(()), _) => {
                let session = handle.id().as_str();
                tracing::info!(session, agent = agent.as_str(), "session started");
                self.figures().sessions_started.of(agent).add(1);
                Ok(handle)
            }
            (Err(error), None) => Err(error),
            // Somebody else was first with that key.
            (Err(error), Some(key)) => match self.remembered(key).await? {
                Some(id) if error.code == ErrorCode::Conflict => self.session(&SessionId::from(id)),
                Some(_) | None => Err(error),
            },
        }
    }

    /// The session that was started with that key, if one was, whether it runs or not.
    pub async fn started_with(&self, key: &str) -> Result<Option<SessionId>, GatewayError> {
        Ok(self.remembered(create_key(key)).await?.map(SessionId::from))
    }

    /// A session that runs here.
    pub fn session(&self, id: &SessionId) -> Result<SessionHandle, GatewayError> {
        self.live().get(id).cloned().ok_or_else(|| {
            let message = format!("session {id} does not run here; it may be resumed");
            GatewayError::new(ErrorCode::SessionNotFound, message)
        })
    }

    /// The sessions that run here.
    pub fn running(&self) -> Vec<SessionHandle> {
        self.live().values().cloned().collect()
    }

    /// Tells of every session that starts here from now on.
    pub fn starts(&self) -> broadcast::Receiver<Started> {
        self.shared.starts.subscribe()
    }

    /// What the engine counts of itself.
    pub fn figures(&self) -> &Figures {
        self.shared.log.figures()
    }

    /// What is known of a session, wherever it runs.
    pub async fn summary(&self, id: &SessionId) -> Result<SessionSummary, GatewayError> {
        Ok(self.record(id).await?.summary)
    }

    /// Sessions, newest first.
    pub async fn sessions(&self, filter: Filter) -> Result<Vec<SessionSummary>, GatewayError> {
        let found = self.ask(move |store| store.sessions(&filter)).await?;
        Ok(found.into_iter().map(|record| record.summary).collect())
    }

    /// The events of a session after that one: history first, then live.
    pub async fn events(&self, id: &SessionId, after: u64) -> Result<Cursor, GatewayError> {
        self.record(id).await?;
        Ok(self.shared.log.cursor(id, after))
    }

    /// The session of that agent in that directory that was last at work and can be resumed.
    pub async fn latest(
        &self,
        agent: AgentType,
        directory: &Path,
    ) -> Result<Option<SessionId>, GatewayError> {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let fits = |session: &SessionSummary| {
            session.agent_type == agent
                && session.native_session_id.is_some()
                && session.working_directory.as_deref().is_some_and(|at| Path::new(at) == directory)
        };
        let all = self.sessions(Filter::default()).await?;
        // Newest first, so that of equals the first is meant.
        let fitting = all.into_iter().rev().filter(fits);
        Ok(fitting.max_by(|a, b| a.updated_at.cmp(&b.updated_at)).map(|session| session.id))
    }

    /// The session whose id begins so, if there is exactly one.
    pub async fn find(&self, prefix: &str) -> Result<SessionId, GatewayError> {
        let not_found = |message: String| GatewayError::new(ErrorCode::SessionNotFound, message);
        let id = SessionId::from(prefix);
        if self.ask(move |store| store.session(&id)).await?.is_some() {
            return Ok(SessionId::from(prefix));
        }
        let all = self.sessions(Filter::default()).await?;
        let mut fitting =
            all.iter().filter(|found| prefix.len() >= 4 && found.id.as_str().starts_with(prefix));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found.id.clone()),
            (Some(_), Some(_)) => {
                Err(not_found(format!("several sessions begin with {prefix}; give more of the id")))
            }
            (None, _) => Err(not_found(format!(
                "there is no session {prefix}; `agentwire ls` lists those there are"
            ))),
        }
    }

    /// Forgets sessions that are over, and gives those that are gone: one that runs, or that somebody
    /// has just resumed, stays.
    pub async fn forget(
        &self,
        mut sessions: Vec<SessionId>,
    ) -> Result<Vec<SessionId>, GatewayError> {
        sessions.retain(|id| !self.live().contains_key(id));
        let own = self.owner_name().unwrap_or_default();
        self.ask(move |store| {
            let mut gone = Vec::new();
            for id in sessions {
                let Some(record) = store.session(&id)? else { continue };
                let owner = record.owner.as_deref();
                let is_free = record.summary.state == SessionState::Ended
                    && !owner.is_some_and(|owner| store.is_alive(owner));
                // Ours from here on: nobody can resume it.
                if is_free && store.claim(&id, owner, &own)? {
                    gone.push(id);
                }
            }
            store.delete(&gone)?;
            Ok(gone)
        })
        .await
    }

    /// Ends all sessions, and comes back when they are over and durable, or after a while.
    pub async fn shutdown(&self) {
        let mut stops = JoinSet::new();
        for session in self.running() {
            stops.spawn(async move {
                let _ = session.send(Command::Stop).await;
                session.ended().await;
            });
        }
        let _ = tokio::time::timeout(FAREWELL, stops.join_all()).await;
        self.shared.log.shutdown().await;
    }

    /// Makes this process the owner of a session that is over.
    async fn claim(&self, id: &SessionId) -> Result<(), GatewayError> {
        let Some(owner) = self.owner_name() else { return Ok(()) };
        let session = id.clone();
        let claimed = self.ask(move |store| {
            let record = store.session(&session)?;
            let before = record.as_ref().and_then(|record| record.owner.as_deref());
            // One that died before it had begun left its name.
            let is_free = !before.is_some_and(|before| store.is_alive(before));
            Ok(is_free && store.claim(&session, before, &owner)?)
        });
        match claimed.await? {
            true => Ok(()),
            false => {
                let message = format!("session {id} was just taken by another process");
                Err(GatewayError::new(ErrorCode::Conflict, message))
            }
        }
    }

    fn command(&self, agent: AgentType) -> crate::settings::AgentCommand {
        let mut command = self.shared.settings.agent(agent);
        if agent == AgentType::Demo && command.program.is_none() {
            // The demo agent is agentwire itself.
            let own = self.shared.settings.keeper.as_ref();
            command.program = own.map(|path| path.to_string_lossy().into_owned());
            let state = self.shared.settings.data_dir.join("demo");
            command.args.push("demo-agent".to_owned());
            command.args.push(format!("--state-dir={}", state.display()));
        }
        command
    }

    /// What a client is told of a store that cannot be read.
    pub fn storage_error(error: &crate::store::StoreError) -> GatewayError {
        storage(error)
    }

    /// All that is kept of a session beside its events.
    pub async fn record(&self, id: &SessionId) -> Result<Record, GatewayError> {
        let wanted = id.clone();
        let found = self.ask(move |store| store.session(&wanted)).await?;
        found.ok_or_else(|| {
            let message = format!("there is no session {id}; `agentwire ls` lists those there are");
            GatewayError::new(ErrorCode::SessionNotFound, message)
        })
    }

    async fn remembered(&self, key: String) -> Result<Option<String>, GatewayError> {
        self.ask(move |store| store.remembered(&key)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, crate::store::StoreError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        self.shared.ask(ask).await
    }

    fn owner_name(&self) -> Option<String> {
        self.shared.owner.as_ref().map(|owner| owner.name().to_owned())
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, SessionHandle>> {
        self.shared.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, crate::store::StoreError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let store = Arc::clone(self.log.store());
        let asked = tokio::task::spawn_blocking(move || ask(&*store));
        asked.await.map_err(lost)?.map_err(|error| storage(&error))
    }

    /// Closes the log of a session whose actor is gone.
    async fn abandon(&self, id: &SessionId) {
        let id = id.clone();
        let own = self.owner.as_ref().map(|owner| owner.name().to_owned());
        let closed = self.ask(move |store| match store.session(&id)? {
            // Another process may own it by now.
            Some(record) if record.owner == own => {
                sweep::close(store, &id, "agentwire failed in this session")
            }
            Some(_) | None => Ok(()),
        });
        let _ = closed.await;
    }
}

fn create_key(key: &str) -> String {
    format!("create/{key}")
}

fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, GatewayError> {
    match settings.store {
        StoreKind::Memory => Ok(Arc::new(Memory::default())),
        StoreKind::Sqlite => {
            let store = Sqlite::open(&settings.data_dir).map_err(|error| {
                let path = settings.data_dir.display();
                let mut told = storage(&error);
                told.message = format!("failed to open the log in {path}: {error}");
                told
            })?;
            Ok(Arc::new(store))
        }
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

fn lost(error: impl std::fmt::Display) -> GatewayError {
    GatewayError::new(ErrorCode::Internal, format!("agentwire failed: {error}"))
}
