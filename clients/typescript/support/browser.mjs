// Runs the conversation on a page in a browser. The page and the server have one origin, as pages need: this program
// serves the page, and passes the rest on to the server.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";

const [dist, server, token, directory, browser, profile] = process.argv.slice(2);
const to = new URL(server);
const page = `<!doctype html><meta charset=utf-8><script type=module>
const report = (body) => fetch("/report", { method: "POST", body });
try {
  const client = await import("/client/index.js");
  const { converse } = await import("/converse.mjs");
  // Without an address, a page talks to its own server.
  await converse(client, await client.connect({ token: ${JSON.stringify(token)} }), ${JSON.stringify({ workingDirectory: directory })});
  await report("done");
} catch (error) {
  await report(String(error?.stack ?? error));
}
</script>`;

const read = (path) => readFileSync(path, "utf8");
const front = createServer((request, response) => {
  const { pathname } = new URL(request.url, server);
  const answer = (type, text) => response.writeHead(200, { "content-type": type }).end(text);
  if (pathname === "/try") return answer("text/html", page);
  if (pathname === "/converse.mjs") return answer("text/javascript", read(new URL("converse.mjs", import.meta.url)));
  if (/^\/client\/[a-z]+\.js$/.test(pathname)) return answer("text/javascript", read(`${dist}/${pathname.slice(8)}`));
  if (pathname === "/report") {
    let said = "";
    request.on("data", (part) => (said += part)).on("end", () => end(said));
    return response.end();
  }
  const headers = { ...request.headers, host: to.host };
  if (headers.origin) headers.origin = to.origin;
  delete headers.referer;
  const passed = ask({ host: to.hostname, port: to.port, path: request.url, method: request.method, headers }, (from) => {
    response.writeHead(from.statusCode, from.headers);
    response.flushHeaders();
    from.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
});

let child;
let isOver = false;
function end(said) {
  if (isOver) return;
  isOver = true;
  console.log(`browser: ${said}`);
  child?.kill("SIGKILL");
  process.exitCode = said === "done" ? 0 : 1;
  front.closeAllConnections();
  front.close();
}

front.listen(0, "127.0.0.1", () => {
  const { port } = front.address();
  const args = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-sync", "--disable-component-update", "--disable-dev-shm-usage", `--user-data-dir=${profile}`,
  ];
  child = spawn(browser, [...args, `http://127.0.0.1:${port}/try`], { stdio: "ignore" });
  child.on("error", (error) => end(String(error)));
  child.on("exit", () => end("the browser ended"));
});
