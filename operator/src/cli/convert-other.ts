// `penstock convert --from AGENT`: the configuration of another agent with the files that it includes, as a Pipeline with comments on
// standard output, and a row for each gap on standard error.

import { globSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { errorText, PenstockError } from '@penstock/agent/errors'
import type { Problem } from '@penstock/agent/schema/problems'
import type { Document } from 'yaml'
import type { OldAgent } from '../migrate/agents.ts'
import { Draft, type Gap, type NamedText } from '../migrate/draft.ts'
import { printProblems } from './problems.ts'

/** Prints the Pipeline, which is a ClusterPipeline without a namespace, and gives it. */
export function convertFile(agent: OldAgent, file: string, name: string, namespace: string | undefined): Document {
  const draft = new Draft()
  agent.convert({ file, text: readText(file) }, included, draft)
  // The rules for namespaces refuse sources and sinks of files.
  if (namespace !== undefined && draft.types().includes('file')) {
    throw new PenstockError(
      'PEN_USAGE',
      'The configuration reads or writes files of the node, which a Pipeline of a namespace may not. Leave `-n` out: the result is a ClusterPipeline.',
    )
  }
  printProblems(draft.gaps.map(problemOf))
  if (namespace !== undefined) {
    console.error(
      `The Pipeline reads the pods of namespace ${namespace} only, where the old agent read all pods of a node.`,
    )
  }
  const document = draft.document({ name, namespace })
  process.stdout.write(document.toString({ lineWidth: 0, blockQuote: 'literal' }))
  return document
}

function problemOf({ file, line, subject, reason, nearest }: Gap): Problem {
  return { severity: 'warning', path: subject, message: reason, help: nearest, file, line, column: 1 }
}

export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new PenstockError('PEN_USAGE', `"${file}" cannot be read: ${errorText(error)}.`, { cause: error })
  }
}

/** The files of an include, which may be a pattern. A relative path begins at the folder of the file that names it. */
function included(path: string, from: string): readonly NamedText[] {
  const folder = resolve(dirname(from))
  return globSync(path, { cwd: folder })
    .sort()
    .map((found) => resolve(folder, found))
    .map((file) => ({ file, text: readText(file) }))
}
