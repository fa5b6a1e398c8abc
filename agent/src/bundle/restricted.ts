// What a secret must not hold in the pipeline of a tenant. The operator has judged the options as they were written, but not the
// values of secrets, which it puts in place only here: a secret could name a file of the agent, or be a program.

import { optionsOf } from '../config/component-options.ts'
import { findComponent } from '../registry.ts'
import type { Problem } from '../schema/problems.ts'
import { chosenVariant, isTable, type Schema, schemaBelow, variantsOf } from '../schema/walk.ts'
import type { Secrets } from './folder.ts'
import type { Part } from './part.ts'
import { isSecretPlace } from './secret-places.ts'

/** Content in place of a file's name: PEM or JSON. */
const content = /^\s*(?:-----BEGIN |\{)/

/** Problems that name places, never values. */
export function forbiddenSecrets(part: Part, secrets: Secrets): Problem[] {
  const problems: Problem[] = []
  const sources = Object.fromEntries(
    part.subscriptions.map(({ out, options }) => [out, { ...options, type: 'orchestrator_logs' }]),
  )
  for (const [list, kind, components] of [
    ['sources', 'source', { ...part.sources, ...sources }],
    ['transforms', 'transform', part.transforms],
    ['sinks', 'sink', part.sinks],
  ] as const) {
    for (const [id, options] of Object.entries(components)) {
      if (!isTable(options) || part.pipeline.platform?.includes(id) === true) continue
      const declaration = findComponent(kind, String(options['type']))
      if (declaration === undefined) continue // told of when the options are checked
      const { schema } = optionsOf(declaration)
      walk(schema, options, secrets, (path, message, help) =>
        problems.push({ severity: 'error', path: [list, id, ...path].join('.'), message, help }),
      )
    }
  }
  return problems
}

type Report = (path: readonly string[], message: string, help: string) => void

function walk(
  schema: Schema | undefined,
  value: unknown,
  secrets: Secrets,
  report: Report,
  path: readonly string[] = [],
): void {
  const variants = schema === undefined ? undefined : variantsOf(schema)
  if (variants !== undefined && !isSecretPlace(value)) {
    walk(variants[chosenVariant(variants, value)], value, secrets, report, path)
  } else if (isSecretPlace(value)) {
    const text = secrets.value(value.$secret)?.toString('utf8') ?? ''
    const marks = schema === undefined ? [] : (variants ?? [schema])
    if (marks.some((mark) => mark['x-remap'] !== undefined)) {
      report(path, 'must not come from a secret in a namespaced resource (T6)', 'Write the program into the resource.')
    } else if (/^\s*file:/i.test(text) || (marks.some((mark) => mark['x-path'] === true) && !content.test(text))) {
      const help = 'Put its content, PEM or JSON, into the secret.'
      report(path, 'must not name a file in a namespaced resource (T4), but the value of the secret does', help)
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      walk(schema === undefined ? undefined : schemaBelow(schema, index), item, secrets, report, [...path, `${index}`])
    }
  } else if (isTable(value)) {
    for (const [name, member] of Object.entries(value)) {
      walk(schema === undefined ? undefined : below(schema, name), member, secrets, report, [...path, name])
    }
  }
}

function below(schema: Schema, name: string): Schema | undefined {
  const known = schemaBelow(schema, name)
  if (known !== undefined) return known
  const members = Object.values((schema['properties'] ?? {}) as Readonly<Record<string, Schema>>)
  return members.find((member) => ((member['x-aliases'] ?? []) as readonly string[]).includes(name))
}
