// Writes src/types.ts from schema/openapi.json, or with --check compares it.
import { readFileSync, writeFileSync } from "node:fs";

const root = new URL("../../../", import.meta.url);
const target = new URL("../src/types.ts", import.meta.url);
const { components, paths } = JSON.parse(readFileSync(new URL("schema/openapi.json", root), "utf8"));
const manifest = new URL("../package.json", import.meta.url);

/** The board has an API of its own, which this client does not use. */
const names = Object.keys(components.schemas).filter((name) => !name.startsWith("Board"));

function comment(text, indent) {
  if (!text) return "";
  const lines = text.replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

const either = (types) => [...new Set(types)].join(" | ") || "never";
const listed = (type) => (/^[\w"<>, .]+$/.test(type) ? `${type}[]` : `(${type})[]`);

function typeOf(schema, indent = "") {
  if (schema === true || Object.keys(schema).length === 0) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return either(schema.enum.map((value) => JSON.stringify(value)));
  // A choice between sets of fields says which of the fields below are there.
  const choice = schema.oneOf ?? schema.anyOf;
  if (choice && !schema.properties) return either(choice.map((one) => typeOf(one, indent)));
  if (schema.allOf) return schema.allOf.map((one) => typeOf(one, indent)).join(" & ");
  const types = [schema.type].flat();
  return either(types.map((type) => {
    switch (type) {
      case "string": case "boolean": case "null": return type;
      case "integer": case "number": return "number";
      case "array": return listed(typeOf(schema.items ?? {}, indent));
      case "object": return objectOf(schema, indent);
      case undefined: return schema.properties ? objectOf(schema, indent) : "unknown";
      default: throw new Error(`unknown type ${type} in ${JSON.stringify(schema)}`);
    }
  }));
}

function objectOf(schema, indent) {
  const fields = Object.entries(schema.properties ?? {});
  const rest = schema.additionalProperties;
  if (fields.length === 0) {
    return rest && rest !== true ? `Record<string, ${typeOf(rest, indent)}>` : "Record<string, unknown>";
  }
  const inner = `${indent}  `;
  const written = fields.map(([name, field]) => {
    const mark = schema.required?.includes(name) ? "" : "?";
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${comment(field.description, inner)}${inner}${key}${mark}: ${typeOf(field, inner)};\n`;
  });
  return `{\n${written.join("")}${indent}}`;
}

function declaration(name) {
  const schema = components.schemas[name];
  const type = typeOf(schema);
  const about = comment(schema.description, "");
  const isObject = type.startsWith("{") && !schema.oneOf;
  return `${about}export ${isObject ? `interface ${name} ${type}` : `type ${name} = ${type};`}\n`;
}

/** Answers that have no name of their own are named after their operation. */
function* answers() {
  for (const [path, methods] of Object.entries(paths)) {
    if (!path.startsWith("/v1/")) continue;
    for (const { operationId, responses } of Object.values(methods)) {
      const schema = Object.entries(responses ?? {}).find(([status]) => /^20[01]$/.test(status))?.[1].content?.["application/json"]?.schema;
      if (!schema || schema.$ref || !schema.properties) continue;
      const name = `${operationId[0].toUpperCase()}${operationId.slice(1)}Response`;
      yield `export interface ${name} ${objectOf(schema, "")}\n`;
    }
  }
}

const cargo = readFileSync(new URL("Cargo.toml", root), "utf8");
const version = /^version = "(.*)"$/m.exec(cargo)[1];
const made = `// Everything that a server says and accepts. Written by scripts/generate.mjs from schema/openapi.json.

/** The version of agentwire that this package belongs to. */
export const VERSION = "${version}";

${[...names.map(declaration), ...answers()].join("\n")}
/** The name of a command frame. */
export type CommandName = CommandFrame["command"];
`;

const isCurrent = (file, text) => {
  try {
    return readFileSync(file, "utf8") === text;
  } catch {
    return false;
  }
};
const described = readFileSync(manifest, "utf8").replace(/"version": ".*"/, `"version": "${version}"`);
const files = [[target, made], [manifest, described]];
if (process.argv.includes("--check")) {
  const stale = files.filter(([file, text]) => !isCurrent(file, text)).map(([file]) => file.pathname);
  if (stale.length > 0) {
    console.error(`stale: ${stale.join(", ")}\nrun node clients/typescript/scripts/generate.mjs`);
    process.exit(1);
  }
} else {
  for (const [file, text] of files) writeFileSync(file, text);
}
