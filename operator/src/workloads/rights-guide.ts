// The guide's page on rights: each rule of each role with its reason, generated from the rules, so that it lists exactly the granted
// rights.

import { cliRole } from './installation-names.ts'
import {
  agentNamespaceRules,
  agentRoleRules,
  cliRules,
  defaultsClusterRules,
  electionBindingRules,
  operatorRules,
  ownNamespaceRules,
  type Rule,
  reasonOf,
} from './rights.ts'

const named = (names: readonly string[]) =>
  names.length > 4 ? `\`${names[0]}\` to \`${names.at(-1)}\`` : names.map((name) => `\`${name}\``).join(', ')

function row(rule: Rule): string {
  const groups = (rule.apiGroups ?? []).map((group) => (group === '' ? 'core' : group)).join(', ')
  const resources = (rule.resources ?? []).join(', ')
  const only = rule.resourceNames === undefined ? '' : ` named ${named(rule.resourceNames)}`
  return `| ${groups}: ${resources}${only} | ${rule.verbs.join(', ')} | ${reasonOf(rule)} |`
}

const table = (rules: readonly Rule[]) =>
  ['| Resource | Verbs | Reason |', '|---|---|---|', ...rules.map(row)].join('\n')

/** `operator/guide/rights.md` */
export function rightsGuide(): string {
  const agents = Object.entries(agentRoleRules).map(([name, rules]) => `### \`${name}\`\n\n${table(rules)}\n`)
  return `<!-- Generated from operator/src/workloads/rights.ts by npm run generate. -->
# Rights of Penstock in your cluster

Penstock runs under ServiceAccounts with fixed roles. This page lists every rule of the default installation (\`rbac.scope: Cluster\`), with
its reason. To compare it with a cluster, run \`kubectl get clusterrole penstock-operator -o yaml\`.

## The operator, in the whole cluster

ClusterRole \`penstock-operator\`, bound by a ClusterRoleBinding. Two of its rules reach far: it can read the values of all Secrets, and it can
find out the owner of a token.

${table([...operatorRules, ...defaultsClusterRules])}

To limit its read access:

| Value of the chart | Effect |
|---|---|
| \`secrets.mode: Namespaced\` | It reads Secrets only in namespaces where you bind \`penstock-operator-secrets\`. |
| \`secrets.mode: Label\` | It uses only Secrets with the label \`penstock.dev/allow: "true"\`. The right stays; the operator limits itself. |
| \`watch.namespaces\` | It reads resources, Secrets and workloads only in these namespaces. |
| \`rbac.scope: Namespaced\` | It has only Roles in these namespaces; Cluster kinds and webhooks are off. |

## The operator, in namespaces with Agents

ClusterRole \`penstock-operator-namespace\`, bound by a RoleBinding in each namespace of \`agentNamespaces\`.

${table([...agentNamespaceRules, ...electionBindingRules])}

### Agents in namespaces of tenants

Aggregators and sidecars of tenants need this role in the namespace of the tenant. There are two ways to bind it:

| Way | Granted access |
|---|---|
| A RoleBinding in each namespace that wants Agents (better) | Pods, Secrets and accounts of that namespace |
| \`tenantAgents.enabled: true\` | A ClusterRoleBinding: pods, Secrets and accounts of **all** namespaces, kube-system too |

With \`tenantAgents.enabled\` the operator is in effect a cluster administrator, because an account that can create pods in kube-system can use the
accounts there. Set it only if you trust the operator's namespace, its image and its nodes as much as the control plane. The better way is to
bind the role in each namespace:

\`\`\`sh
kubectl create rolebinding penstock-operator -n shop --clusterrole=penstock-operator-namespace \\
  --serviceaccount=penstock-system:penstock-operator
\`\`\`

Such an Agent receives nothing of other namespaces unless an owner grants it: see [Agents of tenants](tenancy.md#agents-of-tenants).

## The operator, in its own namespace

Role \`penstock-operator\`.

${table(ownNamespaceRules)}

## Agents

Each role has one ClusterRoleBinding of the same name. Its subjects are the accounts of the Agents of the platform (in the operator's namespace and in
\`agentNamespaces\`). \`penstock-agent-election\` is bound only in the namespace of an Aggregator. Accounts of the Agents of tenants have no
cluster-wide right, because tenants can use these accounts.

${agents.join('\n')}
Releases up to 0.1 had separate bindings for each Agent. The operator may no longer delete them; after the upgrade run:

\`\`\`sh
kubectl delete clusterrolebindings -l app.kubernetes.io/managed-by=penstock,penstock.dev/agent-namespace
\`\`\`

Or set \`rbac.removeOldBindings: true\` for one upgrade, and the operator deletes them.

## Objects that the operator never changes

The operator changes and deletes only objects that carry its labels (\`app.kubernetes.io/managed-by: penstock\` and \`penstock.dev/agent\`) and that no
other controller owns. If one of your objects has a name that an Agent needs, the operator leaves it alone, and the Agent has \`Accepted=False\` with
the reason \`NameConflict\`.

## People

\`penstock-view\`, \`penstock-edit\` and \`penstock-admin\` are added to the built-in roles \`view\`, \`edit\` and \`admin\` (\`rbac.aggregate\`); [Many teams, one
cluster](tenancy.md) describes them. For \`penstock tap\` and \`top\` through the API server, bind the Role \`${cliRole}\` of the operator's namespace:

${table(cliRules)}
`
}
