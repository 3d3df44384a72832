// Signs in, and lists sessions and routes. Everything is shown as text.

const KEY = "agentwire.token";
const EVERY = 5000;
const at = (id) => document.getElementById(id);

let token = sessionStorage.getItem(KEY);
let timer;

// Characters that could make text look like other text are written out.
function plain(text) {
  const hidden = /[\p{C}\p{Zl}\p{Zp}]/gu;
  return String(text ?? "").replace(
    hidden,
    (one) => `\\u{${one.codePointAt(0).toString(16)}}`,
  );
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(body.detail ?? answer.statusText), { status: answer.status });
  return body;
}

function row(cells) {
  const line = document.createElement("tr");
  for (const text of cells) {
    const cell = document.createElement("td");
    cell.textContent = plain(text);
    line.append(cell);
  }
  return line;
}

// The ticket is in the fragment, which is sent to nobody, and is taken out of the history at once.
async function redeem() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return;
  history.replaceState(null, "", location.pathname);
  const body = JSON.stringify({ ticket });
  const headers = { "content-type": "application/json" };
  ({ token } = await ask("v1/sign-in", { method: "POST", headers, body }));
  sessionStorage.setItem(KEY, token);
}

async function show() {
  const [{ sessions }, { requests }] = await Promise.all([
    ask("v1/sessions?limit=50"),
    ask("v1/requests?state=open"),
  ]);
  at("sessions").replaceChildren(
    ...sessions.map((one) =>
      row([one.id.slice(0, 8), one.agentType, one.state, one.title, one.updatedAt]),
    ),
  );
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  at("notice").textContent =
    `${count(sessions.length, "session")}, ${count(requests.length, "open request")}`;
}

async function list() {
  const { paths } = await ask("openapi.json");
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => row([method.toUpperCase(), path, about.summary])),
  );
  at("routes").replaceChildren(...routes);
}

function signedIn(is) {
  at("sign-in").hidden = is;
  at("signed-in").hidden = !is;
}

async function enter() {
  clearTimeout(timer);
  try {
    await show();
    if (at("signed-in").hidden) {
      signedIn(true);
      await list();
    }
  } catch (error) {
    at("notice").textContent = plain(error.message);
    if (error.status === 401) return leave(token ? plain(error.message) : "Sign in to go on.");
  }
  timer = setTimeout(enter, EVERY);
}

function leave(notice) {
  clearTimeout(timer);
  token = null;
  sessionStorage.removeItem(KEY);
  signedIn(false);
  at("notice").textContent = notice;
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  sessionStorage.setItem(KEY, token);
  enter();
});
at("sign-out").addEventListener("click", () => leave("Signed out."));

try {
  await redeem();
} catch (error) {
  at("notice").textContent = plain(error.message);
}
enter();
