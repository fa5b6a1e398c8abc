import { canonicalJson } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { renderInstallation } from './installation.ts'
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

/** The rights of people: another page explains them. */
const others = /^penstock-(view|edit|admin|metrics-reader)$/

test('each rule of each role of an installation has a reason, and the guide contains the same rules', () => {
  const explained = [
    ...[operatorRules, defaultsClusterRules, agentNamespaceRules, electionBindingRules, ownNamespaceRules, cliRules],
    ...Object.values(agentRoleRules),
  ].flat()
  expect(explained.map(reasonOf).filter((reason) => !/^[A-Z].*\.$/.test(reason))).toEqual([])
  const texts = new Set(explained.map((rule) => canonicalJson(rule)))
  const roles = renderInstallation({ namespace: 'penstock-system', version: '0' }).filter(({ kind }) =>
    /^(Cluster)?Role$/.test(kind),
  )
  for (const { metadata, rules } of roles as unknown as readonly {
    metadata: { name: string }
    rules: readonly Rule[]
  }[]) {
    if (others.test(metadata.name)) continue
    expect(
      rules.filter((rule) => !texts.has(canonicalJson(rule))),
      metadata.name,
    ).toEqual([])
  }
})

test('no role lets the operator or an agent write bindings or roles by names that are not fixed', () => {
  const writes = (rule: Rule) => rule.verbs.some((verb) => !['get', 'list', 'watch'].includes(verb))
  const wide = [
    operatorRules,
    agentNamespaceRules,
    electionBindingRules,
    ownNamespaceRules,
    ...Object.values(agentRoleRules),
  ]
    .flat()
    .filter((rule) => rule.apiGroups?.includes('rbac.authorization.k8s.io') === true && writes(rule))
  expect(wide.length).toBeGreaterThan(0)
  expect(wide.filter(({ resourceNames }) => resourceNames === undefined)).toEqual([])
  // An Aggregator reads nothing from the cluster.
  expect(agentRoleRules['penstock-agent-aggregator']?.flatMap(({ verbs }) => verbs)).toEqual(['create', 'create'])
})
