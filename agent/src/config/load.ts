// The way in: files, or an object that a program already has, to a `Config` or to the list of everything that is wrong.

import type { Registry } from '../component.ts'
import type { Environment } from '../environment.ts'
import { registry } from '../registry.ts'
import type { ProgramRules } from '../remap/rules.ts'
import type { Problem } from '../schema/problems.ts'
import { check, locatedObject } from './check.ts'
import type { LoadResult } from './config.ts'
import { readTables } from './enrichment.ts'
import { machineProblems } from './machine.ts'
import { merge } from './merge.ts'
import type { Located } from './place.ts'
import { type ReadOptions, readParts } from './read.ts'
import { putSecretsIn } from './secrets.ts'

export interface LoadOptions extends ReadOptions {
  /** The components that it may use: all that the agent has if not given. */
  readonly components?: Registry | undefined
  /** Whether a configuration without sources or sinks is fine. */
  readonly allowEmpty?: boolean | undefined
  /** Whether the data directory and the room for disk buffers are looked at and secrets and tables are read; yes if not given. */
  readonly checkMachine?: boolean | undefined
}

/** Reads, merges and checks configuration files. */
export async function loadConfig(options: LoadOptions = {}): Promise<LoadResult> {
  const { parts, problems, files } = readParts(options)
  // A file that could not be read may hold what the others refer to: the graph is not judged without it.
  const partial = problems.length > 0
  const raw = merge(parts, problems)
  const root: Located = {
    value: undefined,
    path: [],
    origins: parts.slice(0, 1).flatMap((part) => part.located.origins),
  }
  const environment = options.env ?? process.env
  const machine = options.checkMachine !== false
  const secretFiles = await putSecretsIn(raw, machine, problems)
  if (machine) problems.push(...(await machineProblems(raw)))
  const tables = machine ? readTables(raw, environment, problems) : undefined
  return check(raw, root, problems, {
    registry: options.components ?? registry,
    environment,
    allowEmpty: options.allowEmpty ?? false,
    files: [...files, ...secretFiles, ...(tables?.files ?? [])],
    tables,
    partial,
  })
}

export interface LoadObjectOptions {
  /** The components that it may use: all that the agent has if not given. */
  readonly components?: Registry | undefined
  /** Environment for proxies and the time zone; none if not given, so that the result depends on the object alone. */
  readonly env?: Environment | undefined
  readonly allowEmpty?: boolean | undefined
  /** The limits and reach of its programs: unlimited if not given. */
  readonly programs?: ProgramRules | undefined
}

/** Checks a configuration that is an object already. Its text is literal: `$` means nothing. Pure. */
export function loadConfigObject(object: unknown, options: LoadObjectOptions = {}): LoadResult {
  const problems: Problem[] = []
  const root = locatedObject(object)
  const raw = merge([{ located: root, holds: 'all' }], problems)
  const { components = registry, env: environment = {}, allowEmpty = false, programs } = options
  return check(raw, root, problems, { registry: components, environment, allowEmpty, files: [], programs })
}
