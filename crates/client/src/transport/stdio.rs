//! A gateway as a child process: `agentwire unified`, over its stdin and stdout. All sessions of a client
//! share it.

mod child;
mod router;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::{
    Command, CommandFrame, Inquiry, InquiryFrame, Json, Profile, SessionId, SessionRequest,
};
use futures_util::stream;

use self::child::Child;
use super::{Call, Calling, Connection, Followed, Opening, Transport};
use crate::error::{AgentError, AgentErrorType};

/// A child process `agentwire unified`. It starts when it is first needed, and again if it dies. It ends
/// with the last clone of this transport, or when the transport is closed; after that, none is started.
/// Clones share one child process.
///
/// ```rust,standalone_crate
/// use agentwire_client::{AgentClient, AgentType, SessionRequest, StdioTransport};
///
/// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
/// # let program = trial.program();
/// let child = StdioTransport::new(program);
/// # let child = child.env("AGENTWIRE_DATA_DIR", trial.data_dir()).directory(trial.work());
/// let client = AgentClient::over(child.clone());
/// assert_eq!(child.pid(), None);
/// let session = client.create(SessionRequest::new(AgentType::Demo, "/say hi")).await?;
/// assert!(child.pid().is_some());
/// session.stop().await?;
/// client.close().await;
/// assert_eq!(child.pid(), None);
/// # Ok::<_, agentwire_client::AgentError>(()) }) }
/// ```
#[derive(Clone)]
pub struct StdioTransport {
    shared: Arc<Shared>,
}

struct Shared {
    launch: Launch,
    running: Mutex<Running>,
}

#[derive(Default)]
enum Running {
    /// Nothing was needed yet.
    #[default]
    Nothing,
    Child(Arc<Child>),
    /// Closed for good, even if streams are still being read.
    Closed,
}

#[derive(Clone)]
struct Launch {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl StdioTransport {
    /// Uses this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let launch = Launch { program: program.into(), env: Vec::new(), directory: None };
        Self::of(launch)
    }

    fn of(launch: Launch) -> Self {
        Self { shared: Arc::new(Shared { launch, running: Mutex::default() }) }
    }

    /// Adds a variable to the child's environment, which otherwise is that of this process.
    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let mut launch = self.shared.launch.clone();
        launch.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        Self::of(launch)
    }

    /// Starts the child in this directory; sessions without a working directory work there.
    pub fn directory(self, path: impl AsRef<Path>) -> Self {
        let directory = Some(path.as_ref().to_owned());
        Self::of(Launch { directory, ..self.shared.launch.clone() })
    }

    /// The child's process id, if it runs.
    pub fn pid(&self) -> Option<u32> {
        match &*self.running() {
            Running::Child(child) if child.is_alive() => Some(child.pid()),
            Running::Child(_) | Running::Nothing | Running::Closed => None,
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running child; starts a new one if there is none.
    fn child(&self) -> Result<Arc<Child>, AgentError> {
        let mut running = self.running();
        match &*running {
            Running::Child(child) if child.is_alive() => return Ok(Arc::clone(child)),
            Running::Child(_) | Running::Nothing => {}
            Running::Closed => {
                let message =
                    format!("failed to communicate with {}: the client was closed", self.name());
                return Err(AgentError::new(AgentErrorType::ConnectionFailed, message));
            }
        }
        let new = Arc::new(Child::start(&self.shared.launch)?);
        *running = Running::Child(Arc::clone(&new));
        Ok(new)
    }

    async fn make_call(&self, call: Call) -> Result<Json<'static>, AgentError> {
        let child = self.child()?;
        let started = matches!(call, Call::Start { .. });
        let reply = child.call(|id| call_line(call, id), None).await?;
        if started && let Ok(Id { id }) = reply.read() {
            // A start attaches to the session. Its events are requested when someone reads them.
            child.leave_unread(&id);
        }
        Ok(reply)
    }
}

#[derive(serde::Deserialize)]
struct Id {
    id: SessionId,
}

impl Transport for StdioTransport {
    fn name(&self) -> String {
        format!("{} unified", self.shared.launch.program.display())
    }

    fn call(&self, call: Call) -> Calling<'_> {
        Box::pin(self.make_call(call))
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        let session = session.clone();
        Box::pin(async move {
            let child = self.child()?;
            // All readers of a session share the child's full stream.
            let reader = child.follow(&session, after).await?;
            let connection: Connection =
                Box::pin(stream::unfold(reader, move |mut reader| async move {
                    let next = reader.next().await?.map(|events| match events {
                        Some(events) => Followed::Events(events.filtered(profile)),
                        None => Followed::LetGo,
                    });
                    Some((next, reader))
                }));
            Ok(connection)
        })
    }

    fn close(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let running = std::mem::replace(&mut *self.running(), Running::Closed);
            if let Running::Child(child) = running {
                child.end().await;
            }
        })
    }
}

/// Shows the names of variables, not their values.
impl fmt::Debug for StdioTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Launch { program, env, directory } = &self.shared.launch;
        let names: Vec<_> = env.iter().map(|(name, _)| name).collect();
        f.debug_struct("StdioTransport")
            .field("program", program)
            .field("directory", directory)
            .field("env", &names)
            .field("pid", &self.pid())
            .finish()
    }
}

/// The line that makes a call.
fn call_line(call: Call, id: Json<'static>) -> String {
    let id = Some(id);
    let inquiry = |inquiry| InquiryFrame { id: id.clone(), inquiry }.to_json().get().to_owned();
    match call {
        Call::Start { request, key } => start_line(*request, &key, id),
        Call::List(query) => inquiry(Inquiry::List(query)),
        Call::Usage(query) => inquiry(Inquiry::Usage(query)),
        Call::Search(query) => inquiry(Inquiry::Search(query)),
        Call::Label(session, change) => inquiry(Inquiry::Label(session, change)),
        Call::Show(session) => inquiry(Inquiry::Show(session)),
        Call::Requests(session) => inquiry(Inquiry::Requests(session)),
        Call::Command(session, command) => {
            let session_id = Some(session.to_string());
            CommandFrame { id, session_id, command }.to_json().get().to_owned()
        }
    }
}

fn start_line(request: SessionRequest, key: &str, id: Option<Json<'static>>) -> String {
    let command = Command::Start(Box::new(request));
    let frame = CommandFrame { id, session_id: None, command }.to_json();
    // The frame was just written as an object.
    let mut fields: std::collections::BTreeMap<String, Json<'static>> =
        frame.read().unwrap_or_default();
    fields.insert("idempotencyKey".to_owned(), Json::of(&key));
    Json::of(&fields).get().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_never_shown() {
        let child = StdioTransport::new("agentwire").env("KEY", "secret");
        let shown = format!("{:?} {child:?}", crate::AgentClient::over(child.clone()));
        assert!(shown.contains("KEY") && !shown.contains("secret"), "{shown}");
    }
}
