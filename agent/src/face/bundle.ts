// The protocol between the operator and agents: bundles in canonical JSON, references to secrets, reports and inquiries.

export type { ComponentView } from '../api/components.ts'
export { type ReadersAnswer, type ReadersBody, readersPath } from '../bundle/access.ts'
export {
  type Bundle,
  type BundleManifest,
  type BundlePipeline,
  type BundleSubscription,
  bucketOf,
  bundleSchema,
  type Candidate,
  candidateFor,
  type HeartbeatAnswer,
  heartbeatPeriods,
  holdMs,
  type Leftover,
  leftoverKey,
  maxBusy,
  pipelineOf,
  type Revision,
  readBundle,
  type Shard,
  type StreamBody,
  type StreamHead,
  sha256,
  takesCandidate,
} from '../bundle/format.ts'
export type { ComponentReport, HeartbeatBody, LastError, PipelineReport } from '../bundle/heartbeat.ts'
export type {
  Figures,
  FiguresAnswer,
  FiguresInquiry,
  InquiriesAnswer,
  InquiriesBody,
  Inquiry,
  TapInquiry,
} from '../bundle/inquiries.ts'
export type { LoadFailure } from '../bundle/runner.ts'
export { isSecretPlace, secretKeys, secretMarker, withSecrets } from '../bundle/secret-places.ts'
export { canonicalJson, sameJson } from '../config/canonical.ts'
