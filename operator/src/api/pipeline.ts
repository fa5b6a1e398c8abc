// Pipeline and ClusterPipeline: sources, transforms and sinks of one namespace or of the platform.

import { multilineModes } from '@penstock/agent/schema'
import { conditions } from './conditions.ts'
import type { CustomResource } from './object.ts'
import {
  bool,
  byDefault,
  duration,
  integer,
  keyedList,
  list,
  object,
  oneOf,
  open,
  quantity,
  required,
  specQuantity,
  text,
  time,
  type ValidationRule,
  type ValueOf,
} from './schema.ts'
import { labelSelector } from './selector.ts'

/**
 * Names of Pipelines and of their components. They must not contain a dot, because it separates the parts of a
 * component id.
 */
export const namePattern = '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$'
/** The pattern in words. */
export const nameWords =
  'at most 63 lower-case letters, digits and `-`, starting with a letter and ending with a letter or digit'
const name = (description: string) =>
  required(text(description, { pattern: namePattern, 'x-expected': nameWords, maxLength: 63 }))
const objectName = (description: string) => required(text(description, { minLength: 1, maxLength: 253 }))

export const nameRule: ValidationRule = {
  rule: `self.metadata.name.matches('${namePattern}')`,
  message: `metadata.name must be ${nameWords}; without a dot, which separates the parts of a component id`,
}

export const config = open('Options of the component, with the names of the agent reference.')

export const selector = object(
  {
    pods: labelSelector('Labels of the pods.'),
    namespaces: labelSelector('Labels of the namespaces; only for Cluster kinds.'),
    containers: object(
      { exclude: list(text('Name of a container.', { maxLength: 63 }), 'Containers to leave out.', { maxItems: 64 }) },
      'Which containers of the pods.',
    ),
    optIn: byDefault(false, bool('Only pods with the label penstock.dev/collect: "true".')),
  },
  'Selects the pods that an orchestrator_logs source reads.',
)

/** How long to wait for the next line of a group, in milliseconds. */
export const defaultGroupTimeoutMs = 1000

export const multiline = object(
  {
    preset: oneOf(['java', 'python', 'go', 'ruby'], 'Rules for the stack traces of a language.'),
    custom: object(
      {
        start: required(text('Expression that matches the first line of an event.', { maxLength: 4096 })),
        condition: required(text('Expression to which `mode` refers.', { maxLength: 4096 })),
        mode: required(oneOf(multilineModes, 'Meaning of a match of `condition`.')),
        flush: text('Expression that matches the last line of an event, whatever the other rules say.', {
          maxLength: 4096,
        }),
        timeoutMs: byDefault(defaultGroupTimeoutMs, integer('How long to wait for the next line.', { minimum: 1 })),
      },
      'Rules of your own.',
    ),
  },
  'How to join lines, for each container stream.',
  { rules: [{ rule: 'has(self.preset) != has(self.custom)', message: 'set either preset or custom' }] },
)

const inputs = list(
  text('Name of an entry, `name.port`, or a pattern with `*`.', { maxLength: 127 }),
  'Where events come from.',
  {
    maxItems: 64,
  },
)

const typeOrRef: readonly ValidationRule[] = [
  { rule: 'has(self.type) != has(self.ref)', message: 'set either type (with config) or ref' },
  { rule: '!has(self.ref) || !has(self.config)', message: 'set either config or ref' },
]

const reference = (kinds: readonly string[]) =>
  object(
    { kind: required(oneOf(kinds, 'Kind of the object.')), name: objectName('Name of the object.') },
    'A shared object.',
  )

const sourceEntry = (cluster: boolean) =>
  object(
    {
      name: name('Name within the Pipeline.'),
      type: text('Type of the source.', { maxLength: 63 }),
      config,
      ref: reference(cluster ? ['ClusterSource'] : ['Source', 'ClusterSource']),
      selector,
      multiline,
    },
    'A source.',
    { rules: typeOrRef },
  )

const transformEntry = object(
  {
    name: name('Name within the Pipeline.'),
    type: required(text('Type of the transform.', { maxLength: 63 })),
    inputs,
    config,
  },
  'A transform.',
)

const sinkEntry = (cluster: boolean) =>
  object(
    {
      name: name('Name within the Pipeline.'),
      type: text('Type of the sink.', { maxLength: 63 }),
      inputs,
      config,
      ref: reference(cluster ? ['ClusterSink'] : ['Sink', 'ClusterSink']),
      overrides: open('Options to set on a shared sink; its owner lists the allowed ones.'),
    },
    'A sink.',
    {
      rules: [
        ...typeOrRef,
        { rule: '!has(self.overrides) || has(self.ref)', message: 'overrides are only for entries with ref' },
      ],
    },
  )

const onLimit = byDefault('Lag', oneOf(['Drop', 'Lag'], 'Drop discards lines above the limit; Lag reads them later.'))

const untilCorrected = 'Until it is corrected, the last accepted version of the Pipeline runs, if one exists.'

const limits = object(
  {
    perContainer: object(
      {
        linesPerSecond: integer('Lines a second of one container.', { minimum: 1 }),
        bytesPerSecond: specQuantity('Bytes per second of one container. 0: nothing is read.', untilCorrected),
        onLimit,
      },
      'For each container.',
    ),
    pipeline: object(
      { bytesPerSecond: specQuantity('Bytes per second on one agent. 0: nothing is read.', untilCorrected), onLimit },
      'For the Pipeline.',
    ),
  },
  'Limits for reading; they apply before any transform.',
)

const testEvent = {
  raw: text('A line.'),
  log: open('Fields of an event.'),
  program: text('A remap program that makes the event.', { maxLength: 16384 }),
}
const oneForm = {
  rule: '[has(self.raw), has(self.log), has(self.program)].exists_one(x, x)',
  message: 'set one of raw, log and program',
}

const test = object(
  {
    name: required(text('Name of the test.', { minLength: 1, maxLength: 253 })),
    insertAt: text('Transform that gets the event.', { maxLength: 63 }),
    input: object(testEvent, 'The event.', { rules: [oneForm] }),
    inputs: list(
      object(
        { insertAt: required(text('Transform that gets the event.', { maxLength: 63 })), ...testEvent },
        'An event.',
        { rules: [oneForm] },
      ),
      'Several events, in order, in place of `insertAt` and `input`.',
      { minItems: 1, maxItems: 16 },
    ),
    expect: required(
      list(
        object(
          {
            at: required(text('Transform whose output to check.', { maxLength: 127 })),
            count: integer('Number of events.'),
            assert: text('A remap condition that an event must meet.', { maxLength: 16384 }),
          },
          'An expectation.',
        ),
        'The expected output.',
        { minItems: 1, maxItems: 64 },
      ),
    ),
  },
  'A test of the transforms.',
  {
    rules: [
      {
        rule: 'has(self.inputs) ? !has(self.insertAt) && !has(self.input) : has(self.insertAt) && has(self.input)',
        message: 'set either insertAt and input, or inputs',
      },
    ],
  },
)

const secretAlias = (cluster: boolean) =>
  object(
    {
      alias: required(
        text('The alias in `SECRET[alias.key]`.', {
          pattern: '^[A-Za-z0-9_-]+$',
          'x-expected': 'one or more letters, digits, `_` and `-`',
          maxLength: 63,
        }),
      ),
      secretName: objectName('Name of the Secret.'),
      ...(cluster ? { namespace: objectName('Namespace of the Secret.') } : {}),
    },
    'An alias.',
  ) as ReturnType<typeof plainAlias>

const plainAlias = () => object({ alias: required(text('')), secretName: required(text('')), namespace: text('') }, '')

/** Maximum number of sources, of transforms, and of sinks of a Pipeline. */
export const maxEntries = 64

export const pipelineSpec = (cluster: boolean) =>
  object(
    {
      mode: byDefault(
        'Auto',
        oneOf(
          ['Auto', 'Node', 'Aggregator', 'Sidecar'],
          'Which agents run it; Auto decides by the type of the sources.',
        ),
      ),
      suspend: byDefault(false, bool('With true, the agents remove the Pipeline; its status and buffers are kept.')),
      secrets: keyedList('alias', secretAlias(cluster), 'Aliases for SECRET[alias.key].', { maxItems: 64 }),
      sources: required(
        keyedList('name', sourceEntry(cluster), 'Where events come from.', { minItems: 1, maxItems: maxEntries }),
      ),
      transforms: keyedList('name', transformEntry, 'The transforms, in order.', { maxItems: maxEntries }),
      sinks: required(
        keyedList('name', sinkEntry(cluster), 'The destinations.', { minItems: 1, maxItems: maxEntries }),
      ),
      limits,
      onError: object(
        {
          deadLetter: object(
            {
              sink: required(text('Name of a sink of the Pipeline.', { maxLength: 63 })),
              maxEventsPerSecond: integer(
                'Maximum events per second on each agent, with equal shares for programs and sinks. The agent discards and counts the rest.',
                {
                  minimum: 1,
                },
              ),
            },
            'Destination for events whose program failed, and, as text, for those that an HTTP destination permanently rejects.',
          ),
        },
        'Handling of failed events.',
      ),
      tests: keyedList('name', test, 'The webhook, the operator and `penstock test` run these.', { maxItems: 100 }),
    },
    'Desired state of the Pipeline.',
    {
      rules: [
        {
          rule: 'self.sources.all(s, !self.sinks.exists(k, k.name == s.name)) && (!has(self.transforms) || self.transforms.all(t, !self.sources.exists(s, s.name == t.name) && !self.sinks.exists(k, k.name == t.name)))',
          message: 'names must be unique across sources, transforms and sinks',
        },
      ],
    },
  )

const failure = object(
  {
    node: text('Name of the node.'),
    reason: text('A constant.'),
    message: text('One sentence.'),
  },
  'An agent that could not run it.',
)

export const pipelineStatus = object(
  {
    observedGeneration: integer('The newest generation that the operator has processed.'),
    programmedGeneration: integer('The generation that agents run.'),
    conditions,
    tests: object({ passed: integer('Tests passed.'), failed: integer('Tests failed.') }, 'Tests of the resource.'),
    agents: list(
      object(
        {
          name: required(text('Namespace and name of the Agent.')),
          revision: text(
            "Revision of this content: it changes only if the agents' configuration for the Pipeline changes.",
          ),
          desired: integer('Agents that must run it.'),
          current: integer('Agents that run it.'),
          earlier: integer('Number of agents that run an earlier version; absent if none does.'),
          failed: integer('Agents that could not load it.'),
          stale: integer('Number of agents that have stopped reporting.'),
          failures: list(failure, 'At most five.', { maxItems: 5 }),
        },
        'An Agent that runs it.',
      ),
      'The Agents that run it.',
    ),
    flow: object(
      {
        window: duration('Span of the figures.'),
        eventsIn: quantity('Events read.'),
        eventsOut: quantity('Events delivered.'),
        dropped: quantity('Events discarded.'),
        errors: quantity('Errors.'),
        lagSeconds: integer('How far reading is behind.'),
        buffered: quantity('The largest number of bytes in buffers.'),
        observedAt: time('When.'),
      },
      'Traffic, rounded to two digits.',
    ),
    components: list(
      object(
        {
          name: required(text('Name of the component.')),
          kind: oneOf(['source', 'transform', 'sink'], 'Its kind.'),
          errors: quantity('Errors.'),
          lastError: object(
            {
              reason: text('A constant.'),
              message: text('One sentence.'),
              at: time('When.'),
              node: text('Where.'),
            },
            'The newest error.',
          ),
        },
        'A component with errors.',
      ),
      'Components with errors.',
    ),
    summary: object(
      {
        agents: text('Agents that run it, out of those that must: 40/40.'),
        reason: text('Why it is not ready.'),
        inPerSecond: text('Events read a second.'),
        outPerSecond: text('Events delivered a second.'),
        dropped: text('Events discarded in the window.'),
        revision: text('Revision of its content on the first Agent.'),
      },
      'Columns of `kubectl get`.',
    ),
    authorizedBy: text(
      'The user who applied this version of a ClusterPipeline, if `authorizeClusterPipelines` is set.',
    ),
  },
  'Observed state of the Pipeline.',
)

export type PipelineSpec = ValueOf<ReturnType<typeof pipelineSpec>>
export type PipelineStatus = ValueOf<typeof pipelineStatus>
export type Pipeline = CustomResource<PipelineSpec, PipelineStatus>
export type SourceEntry = PipelineSpec['sources'][number]
