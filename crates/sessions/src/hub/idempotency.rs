//! What counts once, however often it is sent: starts and prompts by a client's key, prompts by their id.
//!
//! A key is stored with what it was used for, in the same transaction. Sent again with the same content, it
//! returns the same session; with other content, it is a conflict.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::reply::PromptResult;
use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, Json, NewSession, Prompt, SessionConfig, SessionId,
};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::{Hub, lost};
use crate::SessionHandle;
use crate::blocking::blocking_if_long;
use crate::budget::Share;
use crate::session::{Client, prompt_key};

/// How often a start that waits for another with the same key checks whether the store has room.
const GLANCE: Duration = Duration::from_millis(50);

/// The keys in use, and whether the start that sent one was refused because the store was full.
pub(super) type Keys = HashMap<String, bool>;

/// The right to use one key, until it is dropped; others with the same key wait.
pub(super) struct KeyGuard {
    keys: Arc<watch::Sender<Keys>>,
    pub(super) key: String,
}

impl KeyGuard {
    /// Marks the start as refused. The key is not free until what was submitted to the log is undone.
    pub(super) fn refuse(&self) {
        self.keys.send_modify(|keys| {
            keys.insert(self.key.clone(), true);
        });
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.keys.send_modify(|keys| {
            keys.remove(&self.key);
        });
    }
}

pub enum StartOutcome {
    /// It runs here.
    Running(SessionHandle),
    /// The key was used before, for this session, which may have ended.
    Existing(SessionId),
}

/// A key, and a digest of the content sent with it.
pub(super) struct Key {
    name: String,
    content: String,
}

impl Key {
    fn of_start(new: &NewSession) -> Option<Self> {
        let key = new.key.as_deref()?;
        let (prompt, resume) = (new.prompt.as_ref(), new.resume.as_ref());
        // A start that continues a session equals a prompt to it, which names no agent.
        let agent = (!new.goes_on()).then_some(new.agent);
        let further = (new.fork, &new.native_resume, &new.id, &new.config, new.replaces_config);
        Some(Self::of(create_key(key), agent, prompt, resume, further))
    }

    /// The key of a prompt: each session has its own keys.
    fn of_prompt(key: &str, session: &SessionId, prompt: &Prompt) -> Self {
        let further = (false, &None, &None, &SessionConfig::default(), false);
        Self::of(Self::at(session, key), None, Some(prompt), Some(session), further)
    }

    fn at(session: &SessionId, key: &str) -> String {
        format!("{session}/key/{key}")
    }

    fn of(
        name: String,
        agent: Option<AgentType>,
        prompt: Option<&Prompt>,
        session: Option<&SessionId>,
        further: (bool, &Option<String>, &Option<SessionId>, &SessionConfig, bool),
    ) -> Self {
        let mut digest = HashWriter(Sha256::new());
        // Writing to a hash cannot fail.
        let _ = blocking_if_long(prompt.map_or(0, length), || {
            serde_json::to_writer(&mut digest, &(agent, prompt, session, further))
        });
        let digest = digest.0.finalize();
        let content = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { name, content }
    }

    /// The form in which it is stored once it is used for this session.
    pub(super) fn used_for(&self, session: &SessionId) -> (String, String) {
        (self.name.clone(), format!("{session} {}", self.content))
    }

    /// The session it was used for, unless it was used with other content.
    fn session(&self, kept: &str) -> Result<SessionId, GatewayError> {
        // Older versions stored no digest.
        let (session, content) = kept.split_once(' ').unwrap_or((kept, &self.content));
        if content == self.content {
            return Ok(SessionId::from(session));
        }
        let message = format!("the key was used for something else, in session {session}");
        Err(GatewayError::new(ErrorCode::Conflict, message))
    }
}

/// Hashes what is written, without holding it in memory.
struct HashWriter(Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn length(prompt: &Prompt) -> usize {
    let images: usize = prompt.images.iter().map(|image| image.data.len()).sum();
    let content = prompt.content.as_ref().map_or(0, |content| content.get().len());
    prompt.text.len() + images + content
}

impl Hub {
    /// The name of a client's key: each client has its own keys. `owner` identifies the client.
    pub fn key_of(owner: &str, key: &str) -> String {
        format!("{owner}/{key}")
    }

    /// Starts a session, or resumes one that has ended. It is durable when this returns. Cancelling the
    /// call leaves nothing half done.
    pub async fn start(&self, new: NewSession) -> Result<SessionHandle, GatewayError> {
        let hub = self.clone();
        let started = tokio::spawn(async move { hub.start_once(new, None, false).await });
        match started.await.map_err(lost)?? {
            StartOutcome::Running(session) => Ok(session),
            StartOutcome::Existing(id) => self.session(&id),
        }
    }

    /// The same, or continues a session that waits here for its next prompt. `share` is a large prompt's
    /// share of the budget.
    pub async fn start_or_continue(
        &self,
        new: NewSession,
        share: Option<Arc<Share>>,
    ) -> Result<StartOutcome, GatewayError> {
        let hub = self.clone();
        let started = tokio::spawn(async move { hub.start_once(new, share, true).await });
        started.await.map_err(lost)?
    }

    async fn start_once(
        &self,
        mut new: NewSession,
        share: Option<Arc<Share>>,
        may_continue: bool,
    ) -> Result<StartOutcome, GatewayError> {
        let Some(key) = Key::of_start(&new) else {
            return self
                .start_with_key(new, None, share, may_continue)
                .await
                .map(StartOutcome::Running);
        };
        let guard = self.lock_key(&key.name).await?;
        if let Some(id) = self.used(&key).await? {
            return Ok(StartOutcome::Existing(id));
        }
        if let (Some(id), Some(prompt), Some(name)) =
            (new.resume.clone().filter(|_| !new.fork), &mut new.prompt, &new.key)
        {
            // The key may have been used for a prompt.
            let as_prompt = Key { name: Key::at(&id, name), content: key.content.clone() };
            let message = prompt.message_id.get_or_insert_with(|| message_id(name, &key.content));
            if self.used(&as_prompt).await?.is_some() || self.was_accepted(&id, message).await? {
                return Ok(StartOutcome::Existing(id));
            }
        }
        match self.start_with_key(new, Some((&key, guard)), share, may_continue).await {
            Ok(session) => Ok(StartOutcome::Running(session)),
            // Another process may have used the key first. Any other error is this process's own.
            Err(error) if error.code == ErrorCode::Conflict => {
                self.used(&key).await?.map(StartOutcome::Existing).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn start_with_key(
        &self,
        new: NewSession,
        once: Option<(&Key, KeyGuard)>,
        share: Option<Arc<Share>>,
        may_continue: bool,
    ) -> Result<SessionHandle, GatewayError> {
        match self.waiting(&new).filter(|_| may_continue) {
            Some(session) => {
                let key = once.as_ref().map(|(key, _)| key.used_for(session.id()));
                self.continue_session(session, new, key, share).await
            }
            None => self.launch(new, once).await,
        }
    }

    /// Sends a command to a session that runs here. A prompt that was accepted before, by its id or its
    /// key, counts once, even if the session has ended since or runs in another process. A prompt's own id
    /// takes precedence over a key.
    pub async fn send_command(
        &self,
        id: &SessionId,
        client: &Client,
        mut command: Command,
        key: Option<String>,
        share: Option<Arc<Share>>,
    ) -> Result<Json<'static>, GatewayError> {
        let (Command::Prompt(prompt), Some(key)) = (&mut command, key) else {
            return self.send_or_repeat(id, client, command, None, share).await;
        };
        if prompt.message_id.is_some() {
            return self.send_or_repeat(id, client, command, None, share).await;
        }
        let start = key;
        let key = Key::of_prompt(&start, id, prompt);
        let message_id = message_id(&start, &key.content);
        let guard = self.lock_key(&key.name).await?;
        if self.used(&key).await?.is_some() || self.went_on(&start, id, &key).await? {
            return Ok(Json::of(&PromptResult { message_id, repeated: true }));
        }
        prompt.message_id = Some(message_id);
        let (hub, id, client) = (self.clone(), id.clone(), client.clone());
        // Holds the key to the end, even if the caller stops waiting.
        let done = tokio::spawn(async move {
            let done =
                hub.send_or_repeat(&id, &client, command, Some(key.used_for(&id)), share).await;
            drop(guard);
            done
        });
        done.await.map_err(lost)?
    }

    /// Whether the same prompt arrived under this key with a start that continued the session.
    async fn went_on(&self, start: &str, id: &SessionId, key: &Key) -> Result<bool, GatewayError> {
        let kept = self.stored_answer(create_key(start)).await?;
        let Some((session, content)) = kept.as_deref().and_then(|kept| kept.split_once(' ')) else {
            return Ok(false);
        };
        if session != id.as_str() || !self.was_accepted(id, &message_id(start, content)).await? {
            return Ok(false);
        }
        key.session(&format!("{session} {content}")).map(|_| true)
    }

    async fn send_or_repeat(
        &self,
        id: &SessionId,
        client: &Client,
        command: Command,
        key: Option<(String, String)>,
        share: Option<Arc<Share>>,
    ) -> Result<Json<'static>, GatewayError> {
        let message_id = message_of(&command);
        match self.send(id, client, command, key, share).await {
            Err(refusal) => self.repeated(id, message_id, refusal).await,
            reply => reply,
        }
    }

    /// The earlier answer to a prompt that the session did not receive now, if it had accepted the prompt
    /// before.
    pub async fn repeated(
        &self,
        id: &SessionId,
        message_id: Option<String>,
        refusal: GatewayError,
    ) -> Result<Json<'static>, GatewayError> {
        match message_id.filter(|_| refusal.is_unheard()) {
            Some(message_id) if self.was_accepted(id, &message_id).await? => {
                Ok(Json::of(&PromptResult { message_id, repeated: true }))
            }
            Some(_) | None => Err(refusal),
        }
    }

    /// Whether a session has accepted the prompt with this id, whether it runs or not.
    async fn was_accepted(&self, id: &SessionId, message: &str) -> Result<bool, GatewayError> {
        Ok(self.remembered(prompt_key(id, message)).await?.is_some())
    }

    /// The session that this key was used for, if any, whether the session runs or not.
    pub async fn started_with(&self, key: &str) -> Result<Option<SessionId>, GatewayError> {
        let kept = self.stored_answer(create_key(key)).await?;
        Ok(kept.map(|kept| SessionId::from(kept.split(' ').next().unwrap_or_default())))
    }

    /// The same, if it was used with the same content.
    async fn used(&self, key: &Key) -> Result<Option<SessionId>, GatewayError> {
        let kept = self.stored_answer(key.name.clone()).await?;
        kept.map(|kept| key.session(&kept)).transpose()
    }

    async fn stored_answer(&self, key: String) -> Result<Option<String>, GatewayError> {
        // A start that was refused because the store was full does not count, though the log may still hold
        // it.
        if self.shared.keys.borrow().get(&key) == Some(&true) {
            return Ok(None);
        }
        self.remembered(key).await
    }

    /// Waits for earlier calls with the same key.
    async fn lock_key(&self, key: &str) -> Result<KeyGuard, GatewayError> {
        let mut under_way = self.shared.keys.subscribe();
        loop {
            let mut is_free = false;
            self.shared.keys.send_if_modified(|keys| {
                is_free = !keys.contains_key(key);
                if is_free {
                    keys.insert(key.to_owned(), false);
                }
                is_free
            });
            if is_free {
                return Ok(KeyGuard { keys: Arc::clone(&self.shared.keys), key: key.to_owned() });
            }
            let freed = under_way.wait_for(|keys| !keys.contains_key(key));
            // The earlier call may wait for room in the store, perhaps for a long time.
            if tokio::time::timeout(GLANCE, freed).await.is_err() {
                self.check_room()?;
            }
        }
    }
}

/// The message id of a prompt, by which it counts once.
pub fn message_of(command: &Command) -> Option<String> {
    if let Command::Prompt(prompt) = command { prompt.message_id.clone() } else { None }
}

/// The message id for this content under this key. It is a UUID because some agents accept nothing else.
fn message_id(key: &str, content: &str) -> String {
    let digest = Sha256::digest(format!("{key} {content}"));
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The name under which the use of a client's key is stored.
fn create_key(key: &str) -> String {
    format!("create/{key}")
}
