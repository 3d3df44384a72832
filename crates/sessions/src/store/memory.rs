//! A store that lives as long as the process: for tests, and for users who want nothing on disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agentwire_protocol::{LabelChange, Labels, SessionId, SessionState};

use super::{
    Append, Batch, Brief, End, Filter, ListOrder, Place, Record, Store, StoreError, brief,
};

#[derive(Debug, Default)]
pub struct Memory {
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    /// In the order in which they started.
    sessions: BTreeMap<u64, Session>,
    orders: HashMap<SessionId, u64>,
    begun: u64,
    /// The session and the answer for each key.
    keys: HashMap<String, (u64, String)>,
}

#[derive(Debug)]
struct Session {
    record: Record,
    labels: Labels,
    batches: Vec<Batch>,
}

impl Session {
    fn brief(&self, number: u64) -> Brief {
        let at = brief::active_at(&self.record.summary);
        let place = Place { at, number: i64::try_from(number).unwrap_or(i64::MAX) };
        Brief::new(self.record.clone(), self.labels.clone(), place)
    }
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn append(&self, appends: &[&Append]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        contents.check(appends)?;
        for append in appends {
            contents.append(append);
        }
        Ok(())
    }

    fn read(
        &self,
        session: &SessionId,
        after: u64,
        bytes: usize,
    ) -> Result<Vec<Batch>, StoreError> {
        let contents = self.contents();
        let Some(session) = contents.session(session) else {
            return Ok(Vec::new());
        };
        let start = session.batches.partition_point(|batch| batch.last() <= after);
        let mut total = 0;
        let wanted = session.batches.iter().skip(start).take_while(|batch| {
            let room = total == 0 || (total < bytes && batch.lines.len() <= bytes);
            total += batch.lines.len();
            room
        });
        Ok(wanted.cloned().collect())
    }

    fn start_before(
        &self,
        session: &SessionId,
        before: u64,
        count: u64,
        bytes: u64,
    ) -> Result<u64, StoreError> {
        let contents = self.contents();
        let batches = contents.session(session).map_or(&[][..], |session| &session.batches);
        let end = batches.partition_point(|batch| batch.first < before);
        let rows = batches.iter().take(end).rev();
        let rows = rows.map(|batch| (batch.first, batch.lines.len() as u64));
        Ok(super::batch::start_before(rows, before, count, bytes))
    }

    fn session(&self, id: &SessionId) -> Result<Option<Record>, StoreError> {
        Ok(self.contents().session(id).map(|session| session.record.clone()))
    }

    fn sessions(&self, filter: &Filter) -> Result<Vec<Record>, StoreError> {
        let contents = self.contents();
        let before = match &filter.before {
            Some(id) => contents.orders.get(id).copied().unwrap_or(0),
            None => u64::MAX,
        };
        Ok(contents
            .sessions
            .range(..before)
            .rev()
            .map(|(_, session)| &session.record)
            .filter(|record| !filter.live || record.summary.state != SessionState::Ended)
            .take(filter.limit.unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    fn briefs(
        &self,
        order: ListOrder,
        after: Place,
        limit: usize,
    ) -> Result<Vec<Brief>, StoreError> {
        let contents = self.contents();
        let all = contents.sessions.iter().rev().map(|(number, session)| session.brief(*number));
        let mut briefs: Vec<Brief> =
            all.filter(|brief| brief.place.is_after(after, order)).collect();
        if order == ListOrder::Activity {
            briefs.sort_by_key(|brief| std::cmp::Reverse(brief.place));
        }
        briefs.truncate(limit);
        Ok(briefs)
    }

    fn brief(&self, session: &SessionId) -> Result<Option<Brief>, StoreError> {
        let contents = self.contents();
        let number = contents.orders.get(session).copied();
        let found = number.and_then(|number| Some((number, contents.sessions.get(&number)?)));
        Ok(found.map(|(number, session)| session.brief(number)))
    }

    fn ends(&self) -> Result<Vec<End>, StoreError> {
        let end = |(order, session): (&u64, &Session)| End {
            id: session.record.summary.id.clone(),
            number: i64::try_from(*order).unwrap_or(i64::MAX),
            last: session.last(),
        };
        Ok(self.contents().sessions.iter().map(end).collect())
    }

    fn label(&self, session: &SessionId) -> Result<Labels, StoreError> {
        let contents = self.contents();
        Ok(contents.session(session).map(|session| session.labels.clone()).unwrap_or_default())
    }

    fn labels(&self) -> Result<HashMap<SessionId, Labels>, StoreError> {
        let contents = self.contents();
        let named =
            contents.sessions.values().filter(|session| session.labels != Labels::default());
        let label = |session: &Session| (session.record.summary.id.clone(), session.labels.clone());
        Ok(named.map(label).collect())
    }

    fn set_label(&self, session: &SessionId, change: LabelChange) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let session = contents.session_mut(session);
        Ok(session.map(|session| change.apply(&mut session.labels)).is_some())
    }

    fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        Ok(self.contents().keys.get(key).map(|(_, answer)| answer.clone()))
    }

    fn forget_key(&self, key: &str) -> Result<(), StoreError> {
        self.contents().keys.remove(key);
        Ok(())
    }

    fn claim(
        &self,
        session: &SessionId,
        expected: Option<&str>,
        owner: &str,
    ) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let Some(session) = contents.session_mut(session) else {
            return Ok(false);
        };
        let free = session.record.owner.as_deref() == expected;
        if free {
            session.record.owner = Some(owner.to_owned());
        }
        Ok(free)
    }

    /// No other process can see this store, and the log knows what this process runs.
    fn is_alive(&self, _owner: &str) -> bool {
        false
    }

    fn delete(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let gone: HashSet<u64> =
            sessions.iter().filter_map(|id| contents.orders.remove(id)).collect();
        contents.sessions.retain(|order, _| !gone.contains(order));
        contents.keys.retain(|_, (order, _)| !gone.contains(order));
        Ok(())
    }

    fn version(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

impl Session {
    fn last(&self) -> u64 {
        self.batches.last().map_or(0, Batch::last)
    }
}

impl Contents {
    fn session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(self.orders.get(id)?)
    }

    fn session_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(self.orders.get(id)?)
    }

    /// Checks that all can be stored, one after the other; changes nothing.
    fn check(&self, appends: &[&Append]) -> Result<(), StoreError> {
        let mut ends: HashMap<&SessionId, (u64, Option<&str>)> = HashMap::new();
        let mut keys = HashSet::new();
        for append in appends {
            let id = &append.record.summary.id;
            let known = ends.get(id).copied().or_else(|| {
                let session = self.session(id)?;
                Some((session.last(), session.record.owner.as_deref()))
            });
            let last = append.check(known)?;
            ends.insert(id, (last, append.record.owner.as_deref()));
            for (key, _) in &append.keys {
                if self.keys.contains_key(key) || !keys.insert(key) {
                    return Err(StoreError::used(key));
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, append: &Append) {
        let id = &append.record.summary.id;
        let order = *self.orders.entry(id.clone()).or_insert_with(|| {
            self.begun += 1;
            self.begun
        });
        let session = self.sessions.entry(order).or_insert_with(|| Session {
            record: append.record.clone(),
            labels: Labels::default(),
            batches: Vec::new(),
        });
        session.record = append.record.clone();
        session.batches.extend(append.batch.clone());
        for (key, answer) in &append.keys {
            self.keys.insert(key.clone(), (order, answer.clone()));
        }
    }
}
