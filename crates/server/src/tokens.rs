//! Access control: tokens with scopes, stored in a file, and tickets for browsers.

mod operator;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agentwire_sessions::held_dir::HeldDir;
use agentwire_sessions::own_dirs;
use agentwire_sessions::session::Client;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use self::operator::Operator;

const TICKET_LIFE: Duration = Duration::from_secs(30);

/// How many tickets of one token may be unused at once.
const TICKET_LIMIT: usize = 64;

/// How many characters of a token's digest make its id.
const ID: usize = 8;

/// The name of the client that has the operator's own token.
const OPERATOR: &str = "operator";

/// What a client may do. Every scope includes watching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Read sessions and events.
    Watch,
    /// Also start, prompt and stop sessions.
    Drive,
    /// Also answer requests.
    Approve,
    /// Everything, including what gives an agent more power.
    Admin,
}

impl Scope {
    pub const ALL: [(&'static str, Self); 4] = [
        ("watch", Self::Watch),
        ("drive", Self::Drive),
        ("approve", Self::Approve),
        ("admin", Self::Admin),
    ];

    pub fn allows(self, needed: Self) -> bool {
        match needed {
            Self::Watch => true,
            Self::Drive => matches!(self, Self::Drive | Self::Admin),
            Self::Approve => matches!(self, Self::Approve | Self::Admin),
            Self::Admin => self == Self::Admin,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Drive => "drive",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// An authenticated client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of its token; its answers are recorded under it.
    pub name: Arc<str>,
    pub scope: Scope,
    /// The digest of its token; empty if it needs no token.
    pub(crate) token: Arc<str>,
}

impl Caller {
    pub(crate) fn without_token(name: &str, scope: Scope) -> Self {
        Self { name: name.into(), scope, token: "".into() }
    }

    /// The client as sessions know it. A limited client's answer can allow only what was asked for.
    pub(crate) fn client(&self) -> Client {
        Client { name: Some(self.name.clone()), is_limited: self.is_limited() }
    }

    /// Whether there is anything that it may not do.
    pub(crate) fn is_limited(&self) -> bool {
        self.scope != Scope::Admin
    }

    /// Identifies its token, but is not a secret.
    pub(crate) fn id(&self) -> &str {
        self.token.get(..ID).unwrap_or_default()
    }
}

/// A token as it is stored: without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredToken {
    /// The id to revoke it with.
    pub id: String,
    pub name: String,
    pub scope: Scope,
    /// When it was created, RFC 3339 in UTC.
    pub created_at: String,
    /// SHA-256 of the token, in hex.
    digest: String,
}

/// The tokens of a data directory. Any process may change the file; it is read again after each change.
#[derive(Debug)]
pub struct Tokens {
    /// Held open: an agent that renames a directory above it cannot put its own tokens in that place.
    data_dir: HeldDir,
    operator: Operator,
    cached: Mutex<CachedCallers>,
}

#[derive(Debug, Default)]
struct CachedCallers {
    stamps: [Stamp; 2],
    callers: Vec<Caller>,
}

/// Tells whether a file was replaced or changed.
type Stamp = Option<(u64, i64, i64, u64)>;

impl Tokens {
    /// Opens the tokens of a data directory. Creates the operator's own token if there is none.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        Self::open_in(data_dir, &operator::base())
    }

    /// The same, but a new operator's token goes into a new directory under `base`.
    fn open_in(data_dir: &Path, base: &Path) -> io::Result<Self> {
        let data_dir = HeldDir::open(&data_dir.canonicalize()?)?;
        let lock = lock(data_dir.path())?;
        let operator = Operator::open(data_dir.name(), base)?;
        drop(lock);
        let tokens = Self { data_dir, operator, cached: Mutex::default() };
        drop(tokens.read()?);
        Ok(tokens)
    }

    pub fn main_file(&self) -> &Path {
        &self.operator.file
    }

    pub fn main(&self) -> io::Result<String> {
        operator::secret(&self.data_dir)
    }

    fn list_file(&self) -> PathBuf {
        self.data_dir.path().join("tokens.json")
    }

    /// Creates a token. The secret is returned only this once.
    pub fn create(
        &self,
        name: &str,
        scope: Scope,
        now: String,
    ) -> io::Result<(StoredToken, String)> {
        let secret = new_secret();
        let digest = digest(&secret);
        let id = digest.get(..ID).unwrap_or_default().to_owned();
        let entry = StoredToken { id, name: name.to_owned(), scope, created_at: now, digest };
        let _lock = lock(self.data_dir.path())?;
        let mut entries = read_list(&self.list_file())?;
        entries.push(entry.clone());
        self.write_list(&entries)?;
        Ok((entry, secret))
    }

    /// All tokens except the operator's own.
    pub fn list(&self) -> io::Result<Vec<StoredToken>> {
        read_list(&self.list_file())
    }

    /// Revokes a token; false if there is none with that id.
    pub fn revoke(&self, id: &str) -> io::Result<bool> {
        let _lock = lock(self.data_dir.path())?;
        let mut entries = read_list(&self.list_file())?;
        let before = entries.len();
        entries.retain(|entry| entry.id != id);
        let is_gone = entries.len() < before;
        if is_gone {
            self.write_list(&entries)?;
        }
        Ok(is_gone)
    }

    /// The client with this token. Compares every token, each in constant time.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        let cached = self.read().ok()?;
        let given = digest(token);
        let mut found = None;
        for caller in &cached.callers {
            if bool::from(caller.token.as_bytes().ct_eq(given.as_bytes())) {
                found = Some(caller);
            }
        }
        found.cloned()
    }

    /// Whether a client's token is still valid; it may have been revoked in the meantime.
    pub fn knows(&self, caller: &Caller) -> bool {
        self.read().is_ok_and(|cached| cached.callers.iter().any(|it| it.token == caller.token))
    }

    /// The cached tokens, up to date with the files.
    fn read(&self) -> io::Result<MutexGuard<'_, CachedCallers>> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let data_dir = self.data_dir.path();
        let stamps = [stamp(&data_dir.join(own_dirs::SECRET)), stamp(&self.list_file())];
        if cached.stamps != stamps || cached.callers.is_empty() {
            let operator = own_dirs::secret(data_dir)?.map(|secret| Caller {
                name: OPERATOR.into(),
                scope: Scope::Admin,
                token: secret.digest.into(),
            });
            let mut callers: Vec<Caller> = operator.into_iter().collect();
            let entries = read_list(&self.list_file())?;
            for entry in &entries {
                let is_unique =
                    entries.iter().filter(|other| other.name == entry.name).count() == 1;
                // Names must be unique, so that a reader knows which client answered.
                let name = match is_unique && entry.name != OPERATOR {
                    true => entry.name.as_str().into(),
                    false => format!("{} ({})", entry.name, entry.id).into(),
                };
                let token = entry.digest.as_str().into();
                callers.push(Caller { name, scope: entry.scope, token });
            }
            *cached = CachedCallers { stamps, callers };
        }
        Ok(cached)
    }

    fn write_list(&self, entries: &[StoredToken]) -> io::Result<()> {
        let text = serde_json::to_string_pretty(entries)?;
        write_private(&self.list_file(), &format!("{text}\n"))
    }
}

/// Locks the data directory against changes by other processes.
fn lock(data_dir: &Path) -> io::Result<fs::File> {
    let directory = fs::File::open(data_dir)?;
    directory.lock()?;
    Ok(directory)
}

fn stamp(path: &Path) -> Stamp {
    let data = fs::metadata(path).ok()?;
    Some((data.ino(), data.mtime(), data.mtime_nsec(), data.len()))
}

fn read_list(path: &Path) -> io::Result<Vec<StoredToken>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Writes a file that only its owner can read, atomically.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// 32 random bytes, as text.
fn new_secret() -> String {
    let halves = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    // A UUID has six bits that are not random; the digest of three UUIDs has 256 random bits.
    let mut hash = Sha256::new();
    halves.iter().for_each(|half| hash.update(half.as_bytes()));
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

fn digest(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tickets: each admits one WebSocket, once, within 30 s.
#[derive(Debug, Default)]
pub struct Tickets {
    open: Mutex<Vec<(String, Caller, Instant)>>,
}

impl Tickets {
    /// A ticket for this client, or nothing if too many are unused.
    pub fn issue(&self, caller: Caller, now: Instant) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, _, until)| *until > now);
        if open.iter().filter(|(_, of, _)| of.token == caller.token).count() >= TICKET_LIMIT {
            return None;
        }
        let ticket = new_secret();
        open.push((digest(&ticket), caller, now + TICKET_LIFE));
        Some(ticket)
    }

    /// The client that the ticket was issued to. The ticket is then used up.
    pub fn redeem(&self, ticket: &str, now: Instant) -> Option<Caller> {
        let given = digest(ticket);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, _, until)| *until > now);
        let at = open
            .iter()
            .position(|(issued, _, _)| bool::from(issued.as_bytes().ct_eq(given.as_bytes())))?;
        Some(open.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests;
