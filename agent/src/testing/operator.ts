// Parts of the agent, in addition to its entry points (`face/`), only for tests and the fuzzer of the operator.

export { keysOf, loadPart, type PipelinePart, partsOf, secretsOf } from '../bundle/part.ts'
export { functions } from '../remap/functions.ts'
export { kinds } from '../remap/kind.ts'
export { skeleton } from '../schema/skeleton.ts'
export { metricTable } from '../telemetry/metric-table.ts'
