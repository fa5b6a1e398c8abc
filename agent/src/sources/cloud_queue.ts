// Messages of a queue of a cloud provider (SQS). They are received ten at a time by tasks that work side by side, hidden from
// others meanwhile, and deleted when their events are accepted by the pipeline, or delivered where a sink wants that.

import { availableParallelism } from 'node:os'
import { CredentialProvider, credentialProblems, regionVariableNames } from '../aws/credentials.ts'
import { endpointOverride } from '../aws/profiles.ts'
import { findRegion } from '../aws/region.ts'
import { pause, timeoutSignal } from '../clock.ts'
import { decodedTypes } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource } from '../component.ts'
import { errorText, PenstockError } from '../errors.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import { Timestamp } from '../event/timestamp.ts'
import { HttpClient } from '../http/client.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import { Notes } from '../intake/annotate.ts'
import { MessageReader, Outstanding } from '../intake/message-reader.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { awsAuthMembers, decoding, framing, proxy, tls } from '../schema/groups.ts'
import { address, bool, group, hostPart, oneOf, optional, uint, url } from '../schema/options.ts'
import { Backoff } from '../timing/backoff.ts'
import { openQueue, type Queue, type QueueMessage } from './cloud_queue/queue.ts'

const initialBackoffMs = 1000
const maxBackoffMs = 30_000
/** What a request may take beyond the time for which it waits for messages. */
const requestMs = 30_000

export const cloudQueue = defineSource({
  type: 'cloud_queue',
  summary: 'Receives the messages of a queue of a cloud provider (SQS).',
  description:
    'Agents that receive from one queue share its messages. Credentials come from `auth`, else from the environment, the shared files, a web identity, the container or the instance, in this order, and are looked up again before they end and when the service refuses them. They must allow `sqs:ReceiveMessage` and `sqs:DeleteMessage`; `sqs:GetQueueAttributes` is used by the health check only.',
  aliases: ['aws_sqs'],
  outputs: ['log', 'metric'],
  emits: ({ decoding: chosen }) => decodedTypes(chosen),
  acknowledges: true,
  runsOn: 'aggregator',
  options: {
    queue_url: url('Address of the queue.', {
      examples: ['https://sqs.eu-west-1.amazonaws.com/123456789012/logs'],
    }),
    region: optional(
      address(
        'Region of the queue. If not given, it is taken from where credentials come from, and at last from the host of `queue_url`.',
        hostPart,
      ),
    ),
    endpoint: optional(url('Address of the service in place of the host of `queue_url`.')),
    auth: group(
      { strategy: optional(oneOf(['aws'], 'The only way; need not be given.')), ...awsAuthMembers },
      'Where credentials come from.',
    ),
    client_concurrency: optional(
      uint('Tasks that poll side by side; more help when many small messages arrive. As many as CPUs if not given.', {
        minimum: 1,
        limit: 'pollers',
      }),
    ),
    poll_secs: uint('Seconds to wait for messages in one request. Those that are there are taken at once.', {
      zero: 'a queue without messages answers at once, and is asked again at once',
      default: 15,
      maximum: 20,
    }),
    visibility_timeout_secs: uint(
      'Seconds for which a received message is hidden from others. If its delivery and deletion take longer, it is received again.',
      { default: 300, maximum: 43_200 },
    ),
    delete_message: bool('Whether messages are deleted; `false` is for trials: they come again and again.', {
      default: true,
    }),
    decoding: decoding(),
    framing: framing(),
    proxy: proxy(),
    tls: tls(),
  },

  check(options) {
    const problems = [...framingProblems(options.framing), ...credentialProblems(options.auth)]
    const address = options.endpoint ?? options.queue_url
    if (options.tls.enabled === true && !/^https:/i.test(address)) {
      const option = options.endpoint === undefined ? 'queue_url' : 'endpoint'
      problems.push({ path: 'tls.enabled', message: `is true, but the scheme of \`${option}\` is not https` })
    }
    return problems
  },

  async build(options, context) {
    const { events, stopping, acknowledgements } = context
    const identity = identityFor(context.proxy)
    const settings = compileTls(options.tls)
    for (const warning of settings.warnings) context.logger.warn(warning)
    const client = new HttpClient({ tls: settings, proxy: compileProxy(context.proxy), events })
    const region =
      (await findRegion(options.region, options.auth, { client, identity })) ?? regionOfQueue(options.queue_url)
    if (region === undefined) {
      await client.close()
      await identity?.nodeClient?.close()
      const message =
        identity === undefined
          ? `Could not determine region from Penstock configuration. Set \`region\`. ${noIdentity}`
          : `Could not determine region from Penstock configuration or default providers. Set \`region\`, or ${regionVariableNames} in the environment; the host of \`queue_url\` names none.`
      throw new PenstockError('PEN_CONFIG_INVALID', message, { fact: message })
    }
    const credentials = new CredentialProvider(options.auth, { client, identity, region })
    const endpoint = options.endpoint ?? endpointOverride(identity?.env, 'SQS') ?? new URL(options.queue_url).origin
    let opened: Promise<Queue> | undefined
    const queue = () => {
      opened ??= openQueue({
        url: options.queue_url,
        region,
        endpoint,
        pollSecs: options.poll_secs,
        visibilitySecs: options.visibility_timeout_secs,
        client,
        credentials,
      })
      return opened
    }
    const reader = () => new MessageReader(options, new Notes('cloud_queue', context.globals.logSchema), context)
    const outstanding = new Outstanding()
    const received = { protocol: 'http', endpoint: options.queue_url }

    const deletion = async (receipts: readonly string[]): Promise<void> => {
      if (receipts.length === 0 || !options.delete_message) return
      let failed: readonly string[]
      try {
        failed = await (await queue()).delete(receipts, AbortSignal.timeout(requestMs))
      } catch (error) {
        failed = [errorText(error)]
      }
      if (failed.length === 0) return
      events.count('sqs_message_delete_failed_total', failed.length)
      events.error({
        type: 'writer_failed',
        stage: 'processing',
        message: 'Messages could not be deleted from the queue; they will be received again.',
        fields: { reason: failed[0] },
        count: failed.length,
      })
    }

    /** Hands on the messages of one answer; those that were delivered are deleted together when all have been answered for. */
    const handOn = async (messages: readonly QueueMessage[], reading: MessageReader): Promise<void> => {
      const done: string[] = []
      let open = messages.length
      outstanding.add()
      const finalized = (receipt: string, status: BatchStatus) => {
        if (status === 'delivered' || !acknowledgements) done.push(receipt)
        open--
        // Without acknowledgements the deletion waits until the pipeline has accepted everything.
        if (open === 0 && acknowledgements) void deletion(done).finally(() => outstanding.done())
      }
      for (const { receipt, body, sentMs } of messages) {
        const message = Buffer.from(body, 'utf8')
        events.receivedBytes(message.length, received)
        const finalizer = new Finalizer(acknowledgements ? (status) => finalized(receipt, status) : undefined)
        const sent = sentMs === undefined ? undefined : new Timestamp(sentMs, 0)
        await reading.read(message, finalizer, sent)
        if (!acknowledgements) finalized(receipt, 'delivered')
      }
      if (acknowledgements) return
      await deletion(done)
      outstanding.done()
    }

    const poll = async (): Promise<void> => {
      const reading = reader()
      const limitMs = options.poll_secs * 1000 + requestMs
      const backoff = new Backoff({ initialMs: initialBackoffMs, maxMs: maxBackoffMs, jitter: 'none' })
      while (!stopping.aborted) {
        try {
          const limit = timeoutSignal(limitMs)
          const messages = await (await queue()).receive(AbortSignal.any([stopping, limit]))
          backoff.reset()
          if (messages.length > 0) await handOn(messages, reading)
        } catch (error) {
          if (stopping.aborted) return
          const pauseMs = backoff.next()
          events.error({
            code: 'failed_fetching_sqs_events',
            type: 'request_failed',
            stage: 'receiving',
            message: 'Messages could not be received from the queue; they are asked for again after a pause.',
            fields: { error, pause_secs: pauseMs / 1000 },
          })
          await pause(pauseMs, stopping)
        }
      }
    }

    return {
      async run() {
        const tasks = options.client_concurrency ?? availableParallelism()
        await Promise.all(Array.from({ length: tasks }, poll))
      },
      async settle() {
        await outstanding.none()
        await client.close()
        await identity?.nodeClient?.close()
      },
      async healthcheck(signal) {
        await credentials.get()
        try {
          await (await queue()).check(signal)
        } catch (error) {
          // Who may receive and delete need not be allowed to look at the queue.
          if (error instanceof Error && /^AccessDenied/.test(error.name)) return
          const name = error instanceof Error ? error.name : 'Error'
          throw new PenstockError(
            'PEN_HEALTHCHECK',
            `The queue ${options.queue_url} cannot be used: ${name}: ${errorText(error)}.`,
            { cause: error },
          )
        }
      },
    }
  },
})

/** The region that the host of a queue's address names: beside the name of the service, as `sqs.eu-west-1.` or `eu-west-1.queue.` do. */
function regionOfQueue(address: string): string | undefined {
  const labels = new URL(address).hostname.split('.')
  for (const [index, label] of labels.entries()) {
    const region = label === 'sqs' || label === 'sqs-fips' ? labels[index + 1] : undefined
    const older = label === 'queue' ? labels[index - 1] : undefined
    const name = region ?? older
    if (name !== undefined && /^[a-z]{2,}(-[a-z]+)+-\d+$/.test(name)) return name
  }
  return undefined
}
