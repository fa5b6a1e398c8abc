// The generated files of the charts and of the install manifest. Templates are hand-written; repeated content (CRDs, role rules,
// values, dashboards) is generated beside them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { stringify } from 'yaml'
import { type CustomResourceDefinition, customResourceDefinitions } from '../api/crds.ts'
import { valuesFile, valuesSchema, valuesTable } from './chart-values.ts'
import { minClusterMinor } from './cluster-needs.ts'
import { renderInstallation } from './installation.ts'
import { monitoringFiles } from './monitoring.ts'
import {
  agentNamespacedRules,
  agentNamespaceRules,
  agentRoleRules,
  cliRules,
  defaultsClusterRules,
  electionBindingRules,
  metricsReaderRules,
  operatorRules,
  ownNamespaceRules,
  userRoles,
  watchedNamespaceRules,
} from './rights.ts'
import { rightsGuide } from './rights-guide.ts'

interface DerivedFolder {
  readonly name: string
  readonly path: string
  readonly files: ReadonlyMap<string, string>
  readonly shared?: true
}

const installNamespace = 'penstock-system'
/**
 * Argo CD applies the kinds before everything else. Flux keeps them when its Kustomization is removed, as Helm does: without them, all
 * Pipelines would be deleted.
 */
const crdAnnotations = {
  'argocd.argoproj.io/sync-wave': '-1',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
}

const yaml = (value: unknown) => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`

/** The folders of a repository at `root` with generated files. */
export function chartFolders(root: string): readonly DerivedFolder[] {
  const definitions = customResourceDefinitions()
  const crds = new Map(definitions.map((crd) => [`files/crds/${crd.metadata.name}.yaml`, yaml(crd)]))
  const penstock = new Map(crds)
  for (const [path, content] of monitoringFiles()) penstock.set(`files/${path}`, content)
  penstock.set('files/rules.json', json(rules()))
  penstock.set('values.yaml', valuesFile())
  penstock.set('values.schema.json', valuesSchema())
  penstock.set('Chart.yaml', chartFile('penstock', 'Penstock: logs and metrics from Pipelines, Sources and Sinks.'))
  penstock.set('README.md', readme())
  const crdChart = new Map(crds)
  crdChart.set('Chart.yaml', chartFile('penstock-crds', 'The CRDs of Penstock, for separate installation.'))
  return [
    { name: 'charts/penstock', path: join(root, 'charts/penstock'), files: withTemplates(root, 'penstock', penstock) },
    {
      name: 'charts/penstock-crds',
      path: join(root, 'charts/penstock-crds'),
      files: withTemplates(root, 'penstock-crds', crdChart),
    },
    {
      name: 'operator',
      path: join(root, 'operator'),
      files: new Map([
        ['install.yaml', installManifest()],
        ['kustomization.yaml', kustomization()],
        ['guide/rights.md', rightsGuide()],
      ]),
      shared: true,
    },
  ]
}

/** A Kustomization can use the installation as a base, to patch it or to replace images. */
const kustomization = () =>
  yaml({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources: ['install.yaml'] })

/** The objects that `kubectl apply --server-side -f operator/install.yaml` creates. */
function installManifest(): string {
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: installNamespace } },
    ...customResourceDefinitions({ annotations: crdAnnotations }),
    ...renderInstallation({ namespace: installNamespace, version }),
  ]
  const head =
    '# Generated: all objects of an installation with default values. Apply with kubectl apply --server-side -f.\n'
  return head + objects.map((object: object | CustomResourceDefinition) => `---\n${yaml(object)}`).join('')
}

/** The data for the templates: the rules of every role by its name. */
const rules = () => ({
  operator: operatorRules,
  defaults: defaultsClusterRules,
  agentNamespace: agentNamespaceRules,
  electionBinding: electionBindingRules,
  ownNamespace: ownNamespaceRules,
  cli: cliRules,
  watched: watchedNamespaceRules,
  agents: agentRoleRules,
  agentsNamespaced: agentNamespacedRules,
  metricsReader: metricsReaderRules,
  users: userRoles,
})

const chartFile = (name: string, description: string) =>
  yaml({
    apiVersion: 'v2',
    name,
    description,
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: `>=1.${minClusterMinor}.0-0`,
    keywords: ['logs', 'metrics', 'observability'],
  })

/** Hand-written files in the folder stay unchanged. */
function withTemplates(root: string, chart: string, files: Map<string, string>): Map<string, string> {
  const folder = join(root, 'charts', chart)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1)
    if (entry.isFile() && (path.startsWith('templates/') || path === '.helmignore'))
      files.set(path, readFileSync(join(folder, path), 'utf8'))
  }
  return files
}

const readme = () => `# The penstock chart

\`\`\`sh
helm install penstock oci://REGISTRY/charts/penstock --namespace penstock-system --create-namespace
\`\`\`

The chart installs an operator, and an agent on each node. Users then only add Pipelines; see \`operator/guide\`.

- CRDs are part of the release (\`crds.install\`), are upgraded with it, and remain after it is uninstalled (\`crds.keep\`). With
  \`crds.install=false\`, install them with the chart \`penstock-crds\`. To adopt CRDs that \`kubectl apply\` has created, use
  \`helm upgrade --install … --take-ownership\`; for the other direction, use \`kubectl apply --server-side --force-conflicts\`.
- Templates contain no random values and no look-ups, so the output of \`helm template\` is reproducible.
- \`agents\`, \`clusterSinks\`, \`clusterPipelines\` and \`tenantPolicies\` are stored in the ConfigMap \`penstock-defaults\`, and the operator
  applies them as soon as the CRDs are available. Helm cannot create objects whose CRD is part of the same release.
- \`rbac.scope=Namespaced\` renders Roles in \`watch.namespaces\`, and no cluster-scoped objects except the CRDs (\`crds.install\`).
  \`operator/guide/install.md\` lists the differences.
- \`helm test penstock\` applies a Pipeline and waits until it is ready.

## Values

${valuesTable()}
`
