// Configurations and everything needed to check them: components and their options, programs, templates, pod selection, tests. Slow to
// import, because it loads all components.

export {
  aliasFinding,
  bufferFindings,
  minDiskBuffer,
  optionsOf,
  segmentsOf,
  valueFindings,
} from '../config/component-options.ts'
export { globalOptions, globalsOf, underOperator } from '../config/globals.ts'
export { globPattern, isPattern } from '../config/graph.ts'
export { lanesOf } from '../config/lanes.ts'
export { loadConfigObject } from '../config/load.ts'
export { otherOption, otherOptions, valueAt } from '../config/other-options.ts'
export { insideOffset, positionAt, type TextPosition } from '../config/place.ts'
export { renderedDiagnostic, renderProblems } from '../config/render.ts'
export { formatOf, parseText, type Segments } from '../config/syntax.ts'
export { runUnitTests, type UnitTestOutcome } from '../config/unit-tests.ts'
export { readYamlDocuments } from '../formats/yaml-documents.ts'
export type { EgressOptions } from '../net/egress.ts'
export { Networks } from '../net/networks.ts'
export { components, findComponent } from '../registry.ts'
export { reachingCalls } from '../remap/calls.ts'
export { compileCondition } from '../remap/condition.ts'
export { type FunctionDeclaration, reachText } from '../remap/function.ts'
export { fieldLiteral, textLiteral } from '../remap/literal.ts'
export { compileProgram } from '../remap/program.ts'
export { readsOf } from '../remap/reads.ts'
export { transformer } from '../schema/groups.ts'
export { encodingMessage, isSecret } from '../schema/messages.ts'
export { parseOptions } from '../schema/validate.ts'
export { consoleSink } from '../sinks/console.ts'
export { amqp } from '../sources/amqp.ts'
export { cloudQueue } from '../sources/cloud_queue.ts'
export { file } from '../sources/file.ts'
export { orchestratorEvents } from '../sources/orchestrator_events.ts'
export { capturedFields, type PodField } from '../sources/orchestrator_logs/annotate.ts'
export { compileFieldSelector, podFields } from '../sources/orchestrator_logs/field-selector.ts'
export type { PodObject } from '../sources/orchestrator_logs/pod-metadata.ts'
export {
  compileSelection,
  consentLabel,
  excludedContainers,
  notExcluded,
  type PodSelection,
} from '../sources/orchestrator_logs/selection.ts'
export { orchestratorLogs } from '../sources/orchestrator_logs.ts'
export { stdin } from '../sources/stdin.ts'
export { webserverMetrics } from '../sources/webserver_metrics.ts'
export { compileGlob } from '../tailing/glob.ts'
export { multilineProblems } from '../tailing/multiline.ts'
export { compileTemplate, templateProblem } from '../template.ts'
