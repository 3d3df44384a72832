//! All sessions of this process: starts, finds, lists and ends them.

mod abandoned;
mod changes;
mod commands;
mod events;
mod idempotency;
mod open_requests;
mod plan;
mod queries;
mod reports;
mod start;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agentwire_dialects::program;
use agentwire_dialects::program::DefaultCommand;
use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, SessionId, SessionState, SessionSummary,
};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinSet;

pub use self::changes::Watcher;
use self::changes::Watching;
pub use self::events::Events;
use self::idempotency::Keys;
pub use self::idempotency::{StartOutcome, message_of};
use crate::budget::Budget;
use crate::index::Index;
use crate::lanes::Lanes;
use crate::log::EventLog;
use crate::metrics::Metrics;
use crate::orphans;
use crate::own_dirs;
use crate::owner::Owner;
use crate::process::{Contain, LaunchFiles};
use crate::session::{Mark, SessionHandle, storage};
use crate::settings::{Settings, StoreKind};
use crate::slow_fs::access;
use crate::store::memory::Memory;
use crate::store::sqlite::Sqlite;
use crate::store::{Filter, Record, Store, StoreError};

/// How long sessions may take to end when the hub shuts down.
const FAREWELL: Duration = Duration::from_secs(8);

/// How many starts are buffered for each subscriber; a slower one misses some.
const STARTS: usize = 256;

/// The reason reported for a session whose actor failed.
const FAILED: &str = "agentwire failed in this session";

#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    pinned_dirs: Arc<own_dirs::PinnedDirs>,
    log: EventLog,
    index: Index,
    owner: Option<Owner>,
    contain: Arc<Contain>,
    places: Arc<Semaphore>,
    live: Mutex<HashMap<SessionId, SessionHandle>>,
    keys: Arc<watch::Sender<Keys>>,
    lanes: Arc<Lanes>,
    /// If set, no session starts any more.
    is_closing: AtomicBool,
    starts: broadcast::Sender<SessionStart>,
    watching: Watching,
}

#[derive(Clone, Debug)]
pub struct SessionStart {
    pub session: SessionId,
    /// The session's last event before this start.
    pub after: u64,
}

impl Hub {
    /// Opens the log and closes what a dead process left open.
    pub async fn open(settings: Settings) -> Result<Self, GatewayError> {
        let (keeper, containment) = (settings.keeper.clone(), settings.containment);
        let opened = tokio::task::spawn_blocking(move || {
            let store = open_store(&settings)?;
            let owner = match settings.store {
                StoreKind::Sqlite => Some(Owner::claim(&settings.data_dir).map_err(|error| {
                    let path = settings.data_dir.display();
                    GatewayError::new(
                        ErrorCode::Internal,
                        format!("failed to lock {path}: {error}; check that you can write to it"),
                    )
                })?),
                StoreKind::Memory => None,
            };
            orphans::sweep(&*store).or_else(|error| match error {
                // Damage affects only the sessions that it belongs to, and must not prevent a start.
                StoreError::Failed(_) => {
                    tracing::warn!(%error, "failed to look for sessions of dead processes");
                    Ok(())
                }
                StoreError::Full(_) | StoreError::Busy(_) | StoreError::Conflict(_) => {
                    Err(storage(&error))
                }
            })?;
            LaunchFiles::sweep(&settings.runtime_dir());
            Ok::<_, GatewayError>((settings, store, owner))
        });
        // Both take milliseconds, and neither needs the other.
        let (opened, contain) = tokio::join!(opened, Contain::probe(keeper, containment));
        let (settings, store, owner) = opened.map_err(lost)??;
        let contain = contain?;
        Ok(Self {
            shared: Arc::new(Shared {
                log: EventLog::within(store, Budget::new(settings.in_flight())),
                index: Index::new(match settings.store {
                    StoreKind::Sqlite => Some(settings.data_dir.as_path()),
                    StoreKind::Memory => None,
                }),
                places: Arc::new(Semaphore::new(settings.sessions())),
                pinned_dirs: Arc::new(own_dirs::PinnedDirs::new(&settings)),
                settings: Arc::new(settings),
                owner,
                contain: Arc::new(contain),
                live: Mutex::default(),
                keys: Arc::default(),
                lanes: Arc::new(Lanes::new()),
                is_closing: AtomicBool::new(false),
                starts: broadcast::Sender::new(STARTS),
                watching: Watching::default(),
            }),
        })
    }

    pub fn containment(&self) -> &Contain {
        &self.shared.contain
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub fn log(&self) -> &EventLog {
        &self.shared.log
    }

    /// Refuses new work while the hub shuts down.
    fn check_open(&self) -> Result<(), GatewayError> {
        match self.shared.is_closing.load(Ordering::SeqCst) {
            true => {
                let message = "agentwire is shutting down; try again after it restarts";
                Err(GatewayError::new(ErrorCode::Overloaded, message))
            }
            false => Ok(()),
        }
    }

    /// A session that runs here.
    pub fn session(&self, id: &SessionId) -> Result<SessionHandle, GatewayError> {
        self.shared.live().get(id).cloned().ok_or_else(|| {
            let message = format!("session {id} does not run here; it may be resumed");
            GatewayError::new(ErrorCode::SessionNotFound, message)
        })
    }

    pub fn running(&self) -> Vec<SessionHandle> {
        self.shared.live().values().cloned().collect()
    }

    /// Reports every session that starts here from now on.
    pub fn starts(&self) -> broadcast::Receiver<SessionStart> {
        self.shared.starts.subscribe()
    }

    pub fn metrics(&self) -> &Metrics {
        self.shared.log.metrics()
    }

    pub async fn summary(&self, id: &SessionId) -> Result<SessionSummary, GatewayError> {
        let summary = self.record(id).await?.summary;
        Ok(self.labelled(summary).await)
    }

    pub async fn sessions(&self, filter: Filter) -> Result<Vec<SessionSummary>, GatewayError> {
        let found = self.records(filter).await?;
        let mut labels = self.read_store(|store| store.labels()).await?;
        let shown = |record: Record| {
            let mut summary = record.summary;
            labels.remove(&summary.id).unwrap_or_default().put_on(&mut summary);
            summary
        };
        Ok(found.into_iter().map(shown).collect())
    }

    /// The most recently active session of this agent in this directory that can be resumed.
    pub async fn latest(
        &self,
        agent: AgentType,
        directory: &Path,
    ) -> Result<Option<SessionId>, GatewayError> {
        let directory = access(directory, |here| here.path).await?;
        let fits = |session: &SessionSummary| {
            session.agent_type == agent
                && session.native_session_id.is_some()
                && session.working_directory.as_deref().is_some_and(|at| Path::new(at) == directory)
        };
        let all = self.sessions(Filter::default()).await?;
        // The list is newest first and `max_by` picks the last of equals, so reverse it: of equals, the
        // newest wins.
        let fitting = all.into_iter().rev().filter(fits);
        Ok(fitting.max_by(|a, b| a.updated_at.cmp(&b.updated_at)).map(|session| session.id))
    }

    /// The session whose id starts with this prefix, if there is exactly one.
    pub async fn find(&self, prefix: &str) -> Result<SessionId, GatewayError> {
        let not_found = |message: String| GatewayError::new(ErrorCode::SessionNotFound, message);
        let id = SessionId::from(prefix);
        if self.read_store(move |store| store.session(&id)).await?.is_some() {
            return Ok(SessionId::from(prefix));
        }
        let all = self.sessions(Filter::default()).await?;
        let mut fitting =
            all.iter().filter(|found| prefix.len() >= 4 && found.id.as_str().starts_with(prefix));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found.id.clone()),
            (Some(_), Some(_)) => {
                Err(not_found(format!("several sessions start with {prefix}; give more of the id")))
            }
            (None, _) => Err(not_found(format!(
                "there is no session {prefix}; list sessions with `agentwire ls`"
            ))),
        }
    }

    /// Deletes sessions that have ended, and returns the deleted ones. A session that runs, or that was
    /// just resumed, stays.
    pub async fn forget(
        &self,
        mut sessions: Vec<SessionId>,
    ) -> Result<Vec<SessionId>, GatewayError> {
        sessions.retain(|id| !self.shared.live().contains_key(id));
        let own = self.owner_name().unwrap_or_default();
        let gone = self.shared.write_store(move |store| {
            let mut gone = Vec::new();
            for id in sessions {
                let Some(record) = store.session(&id)? else { continue };
                let owner = record.owner.as_deref();
                let is_free = record.summary.state == SessionState::Ended
                    && !owner.is_some_and(|owner| store.is_alive(owner));
                // We own it from here on: no one can resume it.
                if is_free && store.claim(&id, owner, &own)? {
                    gone.push(id);
                }
            }
            store.delete(&gone)?;
            Ok(gone)
        });
        let gone = gone.await?;
        gone.iter().for_each(|id| self.mark_changed(id));
        Ok(gone)
    }

    /// Ends all sessions. Returns when they have ended and are durable, or after a timeout.
    pub async fn shutdown(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
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

    fn command(&self, agent: AgentType) -> crate::settings::AgentCommand {
        let mut command = self.shared.settings.agent(agent);
        if let DefaultCommand::BuiltIn { verb, state } = program(agent).command
            && command.program.is_none()
        {
            let own = self.shared.settings.keeper.as_ref();
            command.program = own.map(|path| path.to_string_lossy().into_owned());
            let state = self.shared.settings.data_dir.join(state);
            command.args.push(verb.to_owned());
            command.args.push(format!("--state-dir={}", state.display()));
        }
        command
    }

    /// The error a client gets for a store that cannot be read.
    pub fn storage_error(error: &StoreError) -> GatewayError {
        storage(error)
    }

    /// Everything stored about a session except its events.
    pub async fn record(&self, id: &SessionId) -> Result<Record, GatewayError> {
        let found = self.shared.found(id).await.map_err(|error| storage(&error))?;
        found.ok_or_else(|| {
            let message = format!("there is no session {id}; list sessions with `agentwire ls`");
            GatewayError::new(ErrorCode::SessionNotFound, message)
        })
    }

    async fn records(&self, filter: Filter) -> Result<Vec<Record>, GatewayError> {
        let shared = Arc::clone(&self.shared);
        let found = self.read_store(move |store| {
            let records = store.sessions(&filter)?.into_iter();
            let mut may_write = true;
            let records = records.map(|record| shared.looked_after(store, record, &mut may_write));
            let is_wanted =
                |record: &Record| !filter.live || record.summary.state != SessionState::Ended;
            Ok(records.collect::<Result<Vec<_>, _>>()?.into_iter().filter(is_wanted).collect())
        });
        found.await
    }

    async fn remembered(&self, key: String) -> Result<Option<String>, GatewayError> {
        self.read_store(move |store| store.remembered(&key)).await
    }

    async fn read_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        self.shared.read_store(read).await
    }

    fn owner_name(&self) -> Option<String> {
        self.shared.owner.as_ref().map(|owner| owner.name().to_owned())
    }
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, SessionHandle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a session that no longer runs here, unless it already runs again.
    fn leave(&self, id: &SessionId, mark: &Mark) {
        let mut live = self.live();
        if live.get(id).is_some_and(|now| now.has(mark)) {
            live.remove(id);
        }
    }

    async fn read_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        self.log.read_store(read).await.map_err(|error| storage(&error))
    }

    async fn write_store<T: Send + 'static>(
        &self,
        write: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        self.log.write_store(write).await.map_err(|error| storage(&error))
    }

    /// Closes the log of a session whose actor failed.
    async fn abandon(&self, id: &SessionId) {
        let id = id.clone();
        let own = self.owner.as_ref().map(|owner| owner.name().to_owned());
        let closed = self.write_store(move |store| match store.session(&id)? {
            // Another process may own it by now.
            Some(record) if record.owner == own => orphans::close(store, record, FAILED),
            Some(_) | None => Ok(()),
        });
        if let Err(error) = closed.await {
            tracing::warn!(%error, "failed to close a failed session; it is closed later");
        }
    }
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

fn lost(error: impl std::fmt::Display) -> GatewayError {
    GatewayError::new(ErrorCode::Internal, format!("agentwire failed: {error}"))
}
