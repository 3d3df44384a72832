// CommonJS programs require the same module: there is one copy of its classes.
const { AgentwireError, GapError, VERSION } = require("@agentwire/client");
const local = require("@agentwire/client/node");

import("@agentwire/client").then((imported) => {
  if (imported.AgentwireError !== AgentwireError || local.AgentwireError !== AgentwireError) throw new Error("two copies");
  if (!(new GapError("skipped", 1, 2) instanceof AgentwireError) || !VERSION) throw new Error("no class");
  console.log("required: done");
});
