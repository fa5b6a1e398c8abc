// One compile as a pure data transformation, so that a worker process can run it: from a Pipeline with all its references to an
// artifact and reports about it. The input contains no secret values.

import { createHash } from 'node:crypto'
import { canonicalJson } from '@penstock/agent/bundle'
import type { Reason } from '../api/conditions.ts'
import type { KubeObject } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import type { Artifact } from './artifact.ts'
import { advice, problemsOf, sentence, testPipeline } from './check.ts'
import { artifactOf, type CompileProblem, type Unseen } from './compiled.ts'
import { compilePipeline } from './pipeline.ts'
import { resourceOf } from './resources.ts'
import { sharedProblems } from './shape.ts'
import { problemsIn } from './shared.ts'
import { deniedCidrs, programBudgetOf } from './tenancy.ts'

export interface CompileJob {
  readonly pipeline: Pipeline
  /** Sources, Sinks and the Namespace that it may refer to. */
  readonly resources: readonly KubeObject[]
  readonly policy: TenantPolicySpec | undefined
  /** Keys of each Secret and ConfigMap, such as `Secret shop/creds`; null: it does not exist. */
  readonly keys: Readonly<Record<string, readonly string[] | null>>
  readonly apiHosts: readonly string[]
  readonly clusterName: string
  readonly unseen?: Unseen
}

/** The text for a condition. */
export interface Verdict {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: Reason
  readonly message: string
}

export interface CompileResult {
  /** Result for a Pipeline that may run. */
  readonly artifact: Artifact | undefined
  readonly accepted: Verdict
  readonly resolved: Verdict
  readonly tests: { readonly passed: number; readonly failed: number } | undefined
  readonly warnings: readonly string[]
  /** Every problem, for callers that report them all. */
  readonly problems: readonly CompileProblem[]
  readonly diskBufferBytes: number
}

const referenceReasons: ReadonlySet<Reason> = new Set<Reason>([
  'SourceNotFound',
  'SinkNotFound',
  'RefNotPermitted',
  'SecretNotFound',
  'SecretKeyNotFound',
])
/** A missing part without which a component cannot be checked: nothing else is reported about the component. */
const componentReasons: ReadonlySet<Reason> = new Set<Reason>(['SourceNotFound', 'SinkNotFound', 'RefNotPermitted'])
/** Most severe first: a forbidden option is reported before other problems. */
const order: readonly Reason[] = ['ForbiddenOption', 'InvalidConfig', 'CompileFailed', 'TestsFailed']

/** Compiles, checks and tests; calls `onCompiled` before the tests, which have their own time limit. */
export async function compileJob(job: CompileJob, onCompiled: () => void = () => {}): Promise<CompileResult> {
  const { pipeline, policy } = job
  const resource = resourceOf(pipeline)
  const compiled = compilePipeline(resource, job.resources.map(resourceOf), {
    ownMachine: false,
    policy,
    apiHosts: job.apiHosts,
    clusterName: job.clusterName,
    unseen: job.unseen,
    keysOf: (kind, namespace, name) => {
      const keys = job.keys[`${kind} ${namespace}/${name}`]
      return keys === undefined || keys === null ? undefined : new Set(keys)
    },
  })
  const problems: CompileProblem[] = [...problemsOf(compiled)]
  const references = problems.filter((problem) => referenceReasons.has(problem.reason))
  const incomplete = problems.some((problem) => componentReasons.has(problem.reason))
  onCompiled()
  const isFine = () =>
    !problems.some((problem) => problem.severity === 'error' && !referenceReasons.has(problem.reason))
  let tests: CompileResult['tests']
  if (isFine() && !incomplete && compiled.tests.length > 0) {
    const outcome = await testPipeline(compiled)
    tests = { passed: outcome.passed, failed: outcome.failed }
    problems.push(...outcome.problems)
  }
  const errors = problems.filter((problem) => problem.severity === 'error')
  const own = errors
    .filter((problem) => !referenceReasons.has(problem.reason))
    .toSorted((left, right) => order.indexOf(left.reason) - order.indexOf(right.reason))
  const accepted: Verdict =
    own.length > 0
      ? verdict(own, pipeline.spec)
      : incomplete
        ? {
            status: 'Unknown',
            reason: 'Pending',
            message: 'It waits for objects that it refers to: `ResolvedRefs` names them.',
          }
        : { status: 'True', reason: 'Valid', message: '' }
  const resolved: Verdict =
    references.length > 0 ? verdict(references, pipeline.spec) : { status: 'True', reason: 'Resolved', message: '' }
  const { uid = '', generation = 0, creationTimestamp = '', labels = {}, annotations } = pipeline.metadata
  const restricted = pipeline.kind === 'Pipeline'
  const programBudget = restricted ? programBudgetOf(policy) : undefined
  const artifact =
    errors.length > 0
      ? undefined
      : artifactOf(compiled, resource, {
          uid,
          generation,
          createdAt: creationTimestamp,
          labels,
          retry: annotations?.['penstock.dev/retry'],
          rules: rulesDigest(policy),
          tenancy: {
            restricted,
            denyCidrs: restricted ? [...deniedCidrs, ...(policy?.egress?.denyCIDRs ?? [])] : [],
            allowHosts: restricted ? (policy?.egress?.allowHosts ?? []) : [],
            ...(restricted && policy?.implicitCredentials === 'Allow' ? { implicitCredentials: true } : {}),
            ...(programBudget === undefined ? {} : { programBudget }),
            cpuShare: policy?.quota?.cpuShare ?? 100,
          },
        })
  return {
    artifact,
    accepted,
    resolved,
    tests,
    warnings: problems
      .filter((problem) => problem.severity === 'warning' && problem.informational !== true)
      .map((problem) => sentence(problem, pipeline.spec)),
    problems,
    diskBufferBytes: artifact?.diskBufferBytes ?? 0,
  }
}

/** Digest of the permissions in a TenantPolicy, without quotas, which depend on the other Pipelines. */
export function rulesDigest(policy: TenantPolicySpec | undefined): string {
  const { quota: _, gracePeriod: __, namespaceSelector: ___, ...rules } = policy ?? { namespaceSelector: {} }
  return createHash('sha256').update(canonicalJson(rules)).digest('base64url')
}

/** Limits for the problems in one condition. */
const maxSentences = 5
const maxCharacters = 1000

function verdict(problems: readonly CompileProblem[], spec: unknown): Verdict {
  const [first] = problems as [CompileProblem, ...CompileProblem[]]
  const sentences = [...new Set(problems.map((problem) => advice(problem, spec)))]
  let message = sentences[0] as string
  let included = 1
  for (const next of sentences.slice(1, maxSentences)) {
    if (message.length + next.length > maxCharacters) break
    message += `; ${next}`
    included++
  }
  const others = included === sentences.length ? '' : ` (and ${sentences.length - included} more)`
  return { status: 'False', reason: first.reason, message: `${message}${others}` }
}

/** The problem of a resource's structure, as one sentence. */
export function shapeVerdict(object: KubeObject): Verdict {
  return verdictOf(sharedProblems(resourceOf(object)), object)
}

/** The problem of a Source or Sink, found by compiling `sharedPipeline`, as one sentence. */
export function sharedVerdict({ problems }: CompileResult, object: KubeObject): Verdict {
  return verdictOf(
    problemsIn(problems).filter(({ severity }) => severity === 'error'),
    object,
  )
}

function verdictOf(problems: readonly CompileProblem[], object: KubeObject): Verdict {
  return problems.length === 0
    ? { status: 'True', reason: 'Valid', message: '' }
    : verdict(problems, (object as { spec?: unknown }).spec)
}
