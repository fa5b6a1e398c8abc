// Labels that Alloy's sources of pods set by default when they read from the API server.

import { textLiteral } from '@penstock/agent/config'
import type { PodLogs } from './pod-logs.ts'

/** Statements that set the labels `job` and `instance`, unless rules have set them. */
export function apiLabels(id: string, podLogs: Pick<PodLogs, 'name' | 'namespace'> | undefined): readonly string[] {
  const job =
    podLogs === undefined
      ? textLiteral(id)
      : `${textLiteral(`${podLogs.namespace}/${podLogs.name}:`)} + (string(.orchestrator.container_name) ?? "")`
  return [
    `if string!(labels.job || "") == "" { labels.job = ${job} }`,
    'if string!(labels.instance || "") == "" { labels.instance = (string(.orchestrator.pod_namespace) ?? "") + "/" + (string(.orchestrator.pod_name) ?? "") + ":" + (string(.orchestrator.container_name) ?? "") }',
  ]
}
