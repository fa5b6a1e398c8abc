// Restricts the secret values in a tenant's pipeline. The operator has checked the options as written, but not the values of secrets,
// which are only inserted here: a value could name a file of the agent, or be a program.

import type { Registry } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { meaningOf, namesFile } from '../schema/meaning.ts'
import type { Problem } from '../schema/problems.ts'
import { isTable, type WalkedValue, walkOptions } from '../schema/walk.ts'
import type { Secrets } from './folder.ts'
import type { PipelinePart } from './part.ts'
import { isSecretPlace } from './secret-places.ts'

/** Returns problems that contain places but never values. */
export function forbiddenSecrets(part: PipelinePart, secrets: Secrets, registry: Registry): Problem[] {
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
      const declaration = registry.find(kind, String(options['type']))
      if (declaration === undefined) continue // the option check reports it
      const report = (path: WalkedValue['path'], message: string, help: string) =>
        problems.push({ severity: 'error', path: [list, id, ...path].join('.'), message, help })
      const visit = ({ path, value, schemas }: WalkedValue): undefined => {
        if (!isSecretPlace(value)) return
        const meanings = schemas.map(meaningOf)
        const text = secrets.value(value.$secret)?.toString('utf8') ?? ''
        if (meanings.some(({ program }) => program !== undefined)) {
          const help = 'Write the program into the resource.'
          report(path, 'must not come from a secret in a namespaced resource (T6)', help)
        } else if (namesFile(meanings, text)) {
          const help = 'Put its content, PEM or JSON, into the secret.'
          report(path, 'must not name a file in a namespaced resource (T4), but the value of the secret does', help)
        }
      }
      walkOptions(optionsOf(declaration).schema, options, visit, isSecretPlace)
    }
  }
  return problems
}
