//! One session of a server: what it is, what is wanted of it, and what it does.

use std::time::Duration;

use agentwire_protocol::{
    Command, Json, Prompt, SessionConfig, SessionId, SessionSummary, Settlement,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::client::AgentClient;
use crate::error::Error;
use crate::lines::{EventLines, Gathering};
use crate::transport::{Order, encode, follow};

/// How many commands may be under way.
const ORDERS: usize = 16;

/// How many updates may wait to be read; one holds at most some hundred kilobytes, or one event.
const UPDATES: usize = 2;

/// How long a command may take: an agent may have to be asked.
const REPLY: Duration = Duration::from_secs(120);

/// How many events a page has at most. It has fewer if they are large.
const PAGE: usize = 10_000;

/// How much longer than the server waits for events we wait for its answer.
const GRACE: Duration = Duration::from_secs(30);

/// One session of a server.
#[derive(Clone, Debug)]
pub struct Session {
    client: AgentClient,
    id: SessionId,
}

/// All that is known of a session as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// The session as it stands in a list.
    pub summary: SessionSummary,
    /// What it runs with, without secrets; nothing if the server does not tell.
    pub config: SessionConfig,
}

/// Some events of a session, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events.
    pub events: EventLines,
    /// The last of them: where the next page begins.
    pub next: u64,
    /// Whether the session is over and these are its last.
    pub has_ended: bool,
}

#[derive(Deserialize)]
struct RawPage {
    events: Vec<Box<RawValue>>,
    next: u64,
    ended: bool,
}

#[derive(Deserialize)]
struct RawConfig {
    #[serde(default)]
    config: SessionConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    message_id: String,
}

impl Session {
    pub(crate) fn new(client: AgentClient, id: SessionId) -> Self {
        Self { client, id }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Whose it is.
    pub fn client(&self) -> &AgentClient {
        &self.client
    }

    /// What is known of it now.
    pub async fn summary(&self) -> Result<SessionSummary, Error> {
        self.client.get(&self.path("")).await
    }

    /// All that is known of it now.
    pub async fn details(&self) -> Result<Details, Error> {
        let answer: Json<'static> = self.client.get(&self.path("")).await?;
        let read = || -> Result<Details, serde_json::Error> {
            Ok(Details { summary: answer.read()?, config: answer.read::<RawConfig>()?.config })
        };
        read().map_err(|error| self.client.nonsense(&error))
    }

    /// Gives it a prompt, and gives the id under which it was taken. Sent twice with the same
    /// `message_id`, it counts once.
    pub async fn prompt(&self, prompt: &Prompt) -> Result<String, Error> {
        let taken: Taken = self.client.post(&self.path("/prompt"), Some(Json::of(prompt))).await?;
        Ok(taken.message_id)
    }

    /// Stops its turn; the session stays.
    pub async fn interrupt(&self) -> Result<(), Error> {
        let _: Json<'static> = self.client.post(&self.path("/interrupt"), None).await?;
        Ok(())
    }

    /// Ends it. It may take a moment until it is over.
    pub async fn stop(&self) -> Result<SessionSummary, Error> {
        self.client.post(&self.path("/stop"), None).await
    }

    /// Answers what it asks.
    pub async fn settle(&self, settlement: &Settlement) -> Result<Json<'static>, Error> {
        self.client.settle(&self.id, settlement).await
    }

    /// The events after that one: at most `limit`, and those that are there. If there are none, the
    /// server waits for the first for so many seconds, 60 at most.
    pub async fn page(&self, after: u64, limit: usize, wait: u64) -> Result<Page, Error> {
        let path = self.path(&format!("/events?after={after}&limit={limit}&wait={wait}"));
        let page: RawPage =
            self.client.get_within(&path, Duration::from_secs(wait) + GRACE).await?;
        let mut events = Gathering::default();
        for (number, event) in (after + 1..).zip(&page.events) {
            events.push(number, event.get());
        }
        Ok(Page { events: events.take(), next: page.next, has_ended: page.ended })
    }

    /// What has happened after that event, as pages.
    pub fn pages(&self, after: u64) -> Pages {
        Pages { session: self.clone(), position: after }
    }

    /// What happened after that event and what happens from now on, to the end of the session.
    /// Must be called within a runtime.
    pub fn events(&self, after: u64) -> Events {
        let (updates, read) = mpsc::channel(UPDATES);
        let (orders, wanted) = mpsc::channel(ORDERS);
        tokio::spawn(follow(self.clone(), after, updates, wanted));
        let at = self.client.server().map(|server| server.url()).unwrap_or_default();
        Events { updates: read, commands: Commands { orders, at }, position: after }
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", encode(self.id.as_str()))
    }
}

/// What has happened in a session, page after page.
#[derive(Debug)]
pub struct Pages {
    session: Session,
    position: u64,
}

impl Pages {
    /// The next events; none if there are no more by now.
    pub async fn next(&mut self) -> Result<Option<EventLines>, Error> {
        let page = self.session.page(self.position, PAGE, 0).await?;
        self.position = page.next;
        Ok(Some(page.events).filter(|events| events.count() > 0))
    }

    /// The number of the last event that was handed out.
    pub fn position(&self) -> u64 {
        self.position
    }
}

/// What comes of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Its next events: none is left out, none comes twice.
    Events(EventLines),
    /// The connection broke. It is tried again, and goes on where it was.
    Lost(Error),
    /// The connection is there again.
    Back,
}

/// What a session does, over connections that may break.
#[derive(Debug)]
pub struct Events {
    updates: mpsc::Receiver<Result<Update, Error>>,
    commands: Commands,
    position: u64,
}

impl Events {
    /// What comes next; none once the session is over and all was read. Nothing is lost if this is
    /// cancelled. After an error there is no more.
    pub async fn next(&mut self) -> Result<Option<Update>, Error> {
        let update = self.updates.recv().await.transpose()?;
        if let Some(Update::Events(events)) = &update {
            self.position = events.first() + events.count() - 1;
        }
        Ok(update)
    }

    /// The number of the last event that was handed out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Commands over the same connection.
    pub fn commands(&self) -> Commands {
        self.commands.clone()
    }
}

/// Commands to a session over the connection of its [`Events`], for as long as those are read.
#[derive(Clone, Debug)]
pub struct Commands {
    orders: mpsc::Sender<Order>,
    /// The server's address.
    at: String,
}

impl Commands {
    /// Sends a command. The reply comes after the events of what it did.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, Error> {
        let over = || Error::Broken {
            at: self.at.clone(),
            why: "nobody reads the session any more".to_owned(),
        };
        let (reply, replied) = oneshot::channel();
        self.orders.send(Order { command, reply }).await.map_err(|_| over())?;
        match tokio::time::timeout(REPLY, replied).await {
            Ok(replied) => replied.map_err(|_| over())?,
            Err(_) => Err(Error::TimedOut { at: self.at.clone(), seconds: REPLY.as_secs() }),
        }
    }
}
