// Writes the derived files of the operator. With `--check`, it writes nothing and fails if any existing file differs.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withDerived } from '@penstock/agent/testing/rooms'
import { type DerivedFolder, deriveFolders } from '@penstock/agent/tools/generate'
import { stringify } from 'yaml'
import { customResourceDefinitions } from '../api/crds.ts'
import { kinds } from '../api/kinds.ts'
import { kindPage, schemaText } from '../api/reference.ts'
import { rulesPage } from '../api/rules.ts'
import { oldAgents } from '../migrate/agents.ts'
import { roomsPage } from '../testing/rooms.ts'
import { chartFolders } from '../workloads/chart.ts'
import { argoHealthFiles } from './argo-health.ts'

const root = join(import.meta.dirname, '../../..')

/** crds/: one file per kind, and the kustomization for `kubectl apply -k`. */
export function crdFiles(): Map<string, string> {
  const definitions = customResourceDefinitions()
  const files = new Map(definitions.map((crd) => [`${crd.metadata.name}.yaml`, yaml(crd)]))
  files.set(
    'kustomization.yaml',
    yaml({
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: definitions.map((crd) => `${crd.metadata.name}.yaml`),
    }),
  )
  return files
}

/** operator/ARCHITECTURE.md, in which only the list of rooms is derived. */
function architecture(): DerivedFolder {
  const path = join(root, 'operator')
  const page = readFileSync(join(path, 'ARCHITECTURE.md'), 'utf8')
  return {
    name: 'operator',
    path,
    files: new Map([['ARCHITECTURE.md', withDerived(page, 'rooms', roomsPage())]]),
    shared: true,
  }
}

/** operator/guide/: pages in which only the conversion tables are derived. */
function guide(): DerivedFolder {
  const path = join(root, 'operator/guide')
  const files = oldAgents.map(({ name, tables }): [string, string] => {
    const page = readFileSync(join(path, `${name}.md`), 'utf8')
    return [`${name}.md`, withDerived(page, 'tables', tables())]
  })
  return { name: 'operator/guide', path, files: new Map(files), shared: true }
}

/** operator/reference/: a page per kind, and the schema for editors. */
export function referenceFiles(): Map<string, string> {
  const index = kinds.map(({ kind, about }) => `- [${kind}](${kind.toLowerCase()}.md): ${about}`).join('\n')
  const rules =
    '[Rules, conditions and reasons](rules.md) lists the rules for namespaces (T1 to T14), the conditions and their reasons.'
  const schema = '[schema.json](schema.json) is the JSON Schema of all kinds, for editors.'
  return new Map([
    ['README.md', `# Reference of the resources\n\n${index}\n\n${rules}\n\n${schema}\n`],
    ['rules.md', rulesPage()],
    ['schema.json', schemaText()],
    ...kinds.map((kind): [string, string] => [`${kind.kind.toLowerCase()}.md`, kindPage(kind)]),
  ])
}

function yaml(value: object): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
}

function reference(): DerivedFolder {
  return { name: 'operator/reference', path: join(root, 'operator/reference'), files: referenceFiles() }
}

/** All derived folders. */
export function derivedFolders(): readonly DerivedFolder[] {
  return [
    { name: 'crds', path: join(root, 'crds'), files: crdFiles() },
    ...chartFolders(root),
    {
      name: 'operator/resource_customizations',
      path: join(root, 'operator/resource_customizations'),
      files: argoHealthFiles(readFileSync(join(root, 'operator/guide/gitops.md'), 'utf8')),
    },
    reference(),
    architecture(),
    guide(),
  ]
}

if (import.meta.main) process.exitCode = await deriveFolders(derivedFolders(), process.argv.includes('--check'))
