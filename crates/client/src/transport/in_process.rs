//! A gateway in this process: direct calls to the engine.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{Json, NewSession, Profile, SessionId};
use agentwire_sessions::Hub;
pub use agentwire_sessions::Settings;
use agentwire_sessions::hub::StartOutcome;
use agentwire_sessions::session::Client;
pub use agentwire_sessions::settings::{AgentCommand, SessionDefaults, StoreKind, Timing};
use futures_util::stream;
use tokio::runtime::Handle;

use super::{Call, Calling, Connection, Followed, Opening, Transport};
use crate::error::AgentError;
use crate::event_lines::EventLines;

/// How long a report may wait for new events to be read.
const PATIENCE: Duration = Duration::from_secs(2);

/// A gateway in this process, for programs that want no server and no child process. Agents are children of
/// this process and end with it. Clones share one gateway.
///
/// ```rust,standalone_crate
/// use agentwire_client::transport::in_process::{Settings, StoreKind};
/// use agentwire_client::{AgentClient, AgentType, InProcessTransport, SessionRequest};
///
/// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
/// # let (directory, agentwire) = (trial.data_dir(), trial.program().to_owned());
/// let settings = Settings {
///     data_dir: directory,
///     store: StoreKind::Memory,
///     keeper: Some(agentwire), // where the program is installed
///     ..Settings::default()
/// };
/// let client = AgentClient::over(InProcessTransport::with_settings(settings).await?);
/// let session = client.create(SessionRequest::new(AgentType::Demo, "/say hi")).await?;
/// session.finish().await?;
/// assert_eq!(session.ended().await?.turns, 1);
/// client.close().await;
/// # Ok::<_, agentwire_client::AgentError>(()) }) }
/// ```
#[derive(Clone)]
pub struct InProcessTransport {
    gateway: Arc<Gateway>,
}

struct Gateway {
    hub: Hub,
}

impl InProcessTransport {
    /// Opens a gateway that stores its sessions in this directory. Other agentwire processes may share it.
    pub async fn open(data_dir: impl Into<PathBuf>) -> Result<Self, AgentError> {
        Self::with_settings(Settings { data_dir: data_dir.into(), ..Settings::default() }).await
    }

    /// Opens a gateway with these settings. If `keeper` names the agentwire program, no process that an
    /// agent started outlives its session; without it, only the processes in the agent's process group end.
    /// The same program is the demo agent.
    pub async fn with_settings(settings: Settings) -> Result<Self, AgentError> {
        Ok(Self { gateway: Arc::new(Gateway { hub: Hub::open(settings).await? }) })
    }

    async fn make_call(&self, call: Call) -> Result<Json<'static>, AgentError> {
        let hub = &self.gateway.hub;
        Ok(match call {
            Call::Start { request, key } => {
                request.check()?;
                let new = NewSession { key: Some(key), ..NewSession::from(*request) };
                match hub.start_or_continue(new, None).await? {
                    StartOutcome::Running(session) => {
                        Json::of(&hub.labelled(session.summary()).await)
                    }
                    StartOutcome::Existing(id) => Json::of(&hub.summary(&id).await?),
                }
            }
            Call::List(query) => Json::of(&hub.page(*query).await?),
            Call::Usage(query) => Json::of(&hub.usage(&query, PATIENCE).await?),
            Call::Search(query) => Json::of(&hub.search(*query, PATIENCE).await?),
            Call::Label(id, change) => Json::of(&hub.label(&id, change.checked()?).await?),
            Call::Show(id) => Json::of(&hub.details(&id).await?),
            Call::Requests(of) => Json::of(&hub.requests(of.as_ref()).await?),
            Call::Command(id, command) => {
                hub.send_command(&id, &Client::default(), command, None, None).await?
            }
        })
    }
}

impl Transport for InProcessTransport {
    fn name(&self) -> String {
        "the gateway in this process".to_owned()
    }

    fn call(&self, call: Call) -> Calling<'_> {
        Box::pin(self.make_call(call))
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        let session = session.clone();
        Box::pin(async move {
            let cursor = self.gateway.hub.events(&session, after).await?;
            let connection: Connection =
                Box::pin(stream::unfold(Some(cursor), move |cursor| async move {
                    let mut cursor = cursor?;
                    let next = match cursor.next().await {
                        Ok(Some(batch)) => EventLines::numbered(batch.first, batch.lines)
                            .map(|events| Followed::Events(events.filtered(profile)))
                            .ok_or_else(|| AgentError::broken("the log", "it is not UTF-8")),
                        Ok(None) => Ok(Followed::End),
                        Err(error) => Err(AgentError::from(Hub::storage_error(&error)).retryable()),
                    };
                    let goes_on = matches!(next, Ok(Followed::Events(_)));
                    Some((next, goes_on.then_some(cursor)))
                }));
            Ok(connection)
        })
    }

    /// Ends all sessions of this gateway.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.gateway.hub.shutdown())
    }
}

/// Sessions end with their gateway.
impl Drop for Gateway {
    fn drop(&mut self) {
        let hub = self.hub.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { hub.shutdown().await });
        }
    }
}

impl fmt::Debug for InProcessTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessTransport")
            .field("data_dir", &self.gateway.hub.settings().data_dir)
            .finish_non_exhaustive()
    }
}
