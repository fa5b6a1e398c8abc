// Where a Pipeline runs: on nodes, on an aggregator, or in its pods.

import type { ArtifactMode } from './artifact.ts'
import type { Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { Scope } from './scope.ts'
import { runsOn } from './tenancy.ts'

export function modeOf(scope: Scope, spec: Table, types: readonly string[], report: CompileReport): ArtifactMode {
  const mode = spec['mode'] ?? 'Auto'
  const elsewhere = types.filter((type) => runsOn(type) === 'aggregator')
  const onNode = types.filter((type) => runsOn(type) === 'node')
  if (mode === 'Auto' || (mode !== 'Node' && mode !== 'Aggregator' && mode !== 'Sidecar')) {
    if (elsewhere.length > 0 && onNode.length > 0) {
      const message = `Sources of type ${onNode[0]} run on nodes, but those of type ${elsewhere[0]} on an aggregator`
      report.error(scope.pipeline, ['spec', 'sources'], message, 'Make a Pipeline of each.')
    }
    return elsewhere.length > 0 ? 'Aggregator' : 'Node'
  }
  if (mode !== 'Aggregator' && types.includes('orchestrator_events')) {
    const message = `Sources of type orchestrator_events need \`mode: Aggregator\`; found ${mode}`
    const help = 'Otherwise every agent would collect all events. Set `spec.mode` to Aggregator, or omit it.'
    report.error(scope.pipeline, ['spec', 'mode'], message, help)
  }
  if (mode !== 'Node' && types.includes('orchestrator_logs')) {
    report.error(
      scope.pipeline,
      ['spec', 'mode'],
      `Sources of type orchestrator_logs need \`mode: Node\`; found ${mode}`,
    )
  }
  return mode
}
