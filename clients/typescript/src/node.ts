// Connects to the server of this machine, or starts one as a child: in Node, Deno and Bun.
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, statSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { Client, greet } from "./client.js";
import { AgentwireError, invalid } from "./errors.js";
import { HttpTransport, type Server } from "./http.js";
import { named, variable, type ConnectOptions as Options } from "./index.js";
import { StdioTransport, type ChildOptions } from "./stdio.js";

export * from "./index.js";
export { StdioTransport, type ChildOptions } from "./stdio.js";

export interface ConnectOptions extends Options {
  /** Where the server of this machine keeps its data. Default: `AGENTWIRE_DATA_DIR`, or the user's. */
  readonly dataDir?: string;
  /** The child to start if no server runs; `false` starts none. */
  readonly child?: ChildOptions | false;
}

/**
 * Connects to `url`, else to the address in `AGENTWIRE_URL`, else to the server of this machine, else starts
 * `agentwire unified` as a child, which ends with `client.close()`. A server that refuses is an error: no child is
 * started next to it.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const given = options.transport ?? (options.dataDir === undefined || options.url !== undefined ? named(options) : undefined);
  const transport = given ?? found(options) ?? child(options);
  const client = new Client(transport, options);
  if (transport instanceof HttpTransport) await greet(client, options.signal);
  return client;
}

function found(options: ConnectOptions): HttpTransport | undefined {
  const place = options.dataDir ?? dataDir();
  const locate = (): Server => {
    const server = findServer(place);
    return { ...server, token: options.token ?? server.token };
  };
  try {
    locate();
  } catch (error) {
    if (error instanceof AgentwireError && error.isUnreachable && options.child !== false) return undefined;
    throw error;
  }
  // A server that restarts at another address is found there.
  return new HttpTransport(locate, options);
}

function child(options: ConnectOptions): StdioTransport {
  const given = options.child || {};
  const env = { ...(options.dataDir !== undefined && { AGENTWIRE_DATA_DIR: options.dataDir }), ...given.env };
  return new StdioTransport({ ...given, env });
}

/** The data directory that agentwire uses on this machine. */
export function dataDir(): string {
  const own = variable("AGENTWIRE_DATA_DIR");
  if (own !== undefined) return own;
  return join(variable("XDG_DATA_HOME") ?? join(homedir(), ".local", "share"), "agentwire");
}

interface ServerFile {
  readonly pid: number;
  readonly http: string;
  readonly tokenFile?: string | null;
  readonly certificate?: string | null;
}

const noServer = (message: string) => new AgentwireError("connectionFailed", message, { retryable: true, isUnreachable: true });

/** Finds the server that `server.json` of a data directory names. */
export function findServer(place: string): Server {
  checkOwner(place, "the data directory", statOf(place));
  const path = join(place, "server.json");
  const file = readOwn(path);
  if (file === undefined) throw noServer('no server is running; start one with "agentwire serve"');
  const { pid, http, tokenFile, certificate } = parsed<ServerFile>(path, file.text);
  // Another program may listen at that address by now, and must not get the token.
  if (!isRunning(pid, file.stats)) {
    throw noServer(`no server is running: ${path} belongs to process ${pid}, which has exited; start one with "agentwire serve"`);
  }
  if (certificate) {
    throw invalid(
      `the server of ${place} uses TLS with its own certificate, which fetch cannot be given; set AGENTWIRE_URL to its address, AGENTWIRE_TOKEN, and NODE_EXTRA_CA_CERTS to the certificate`,
    );
  }
  const url = http.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
  return { url, token: tokenFile ? readToken(place, tokenFile) : undefined, isLocal: true };
}

function readToken(place: string, tokenFile: string): string {
  // The operator may have replaced a lost token since the server started.
  const operator = statOf(tokenFile) ? undefined : readOwn(join(place, "operator.json"));
  const path = operator ? parsed<{ file: string }>(place, operator.text).file : tokenFile;
  checkOwner(dirname(path), "the token's directory", statOf(dirname(path)));
  const token = readOwn(path);
  if (token === undefined) throw invalid(`failed to read the token in ${path}; create a new one with "agentwire token show"`);
  return token.text.trim();
}

/** A file that agentwire wrote. Refuses links, and files that others can write. */
function readOwn(path: string): { text: string; stats: Stats } | undefined {
  const link = statOf(path, lstatSync);
  if (!link) return undefined;
  if (link.isSymbolicLink()) throw invalid(`${path} is a link, and agentwire creates none; move it away and restart the server`);
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const stats = fstatSync(file);
    checkOwner(path, "the file", stats);
    return { text: readFileSync(file, "utf8"), stats };
  } finally {
    closeSync(file);
  }
}

/** The client would send a token to wherever another user's file points. */
function checkOwner(path: string, what: string, stats: Stats | undefined): void {
  const own = process.getuid?.();
  if (!stats || own === undefined) return;
  if (stats.uid !== own && stats.uid !== 0) throw invalid(`${what} ${path} belongs to another user`);
  if ((stats.mode & 0o022) !== 0) throw invalid(`${what} ${path} is writable by others; restrict it with chmod go-w`);
}

/** Whether the server that wrote the file holds its lock. The process id alone proves little: another process may
 * have it by now. Where locks cannot be read, it must do. */
function isRunning(pid: number, { ino }: Stats): boolean {
  try {
    const locks = readFileSync("/proc/locks", "utf8").split("\n");
    const isHeld = locks.some((line) => line.includes(" FLOCK ") && line.includes(` ${pid} `) && line.includes(`:${ino} `));
    if (isHeld) return true;
    if (locks.length > 1) return false;
  } catch {
    // Not Linux.
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function parsed<T>(path: string, text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw invalid(`failed to read ${path}: ${error}; restart the server`);
  }
}

function statOf(path: string, stat: (path: string) => Stats = statSync): Stats | undefined {
  try {
    return stat(path);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw invalid(`failed to read ${path}: ${(error as Error).message}`);
  }
}
