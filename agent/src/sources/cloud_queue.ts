// Messages of a queue of a cloud provider (SQS). Concurrent tasks receive them ten at a time, and the service hides them from
// other receivers meanwhile. The source deletes a message when the pipeline has accepted its events, or, if a sink asks for
// acknowledgements, when they are delivered.

import { availableParallelism } from 'node:os'
import { CredentialProvider, credentialProblems, regionVariableNames } from '../aws/credentials.ts'
import { endpointOverride } from '../aws/profiles.ts'
import { findRegion } from '../aws/region.ts'
import { decodedTypes } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource } from '../component.ts'
import { errorText, PenstockError } from '../errors.ts'
import { HttpClient } from '../http/client.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { awsAuthMembers, decoding, framing, proxy, tls } from '../schema/groups.ts'
import { address, bool, group, hostPart, oneOf, optional, uint, url } from '../schema/options.ts'
import { openQueue, type Queue } from './cloud_queue/queue.ts'
import { QueueReceiver } from './cloud_queue/receiver.ts'

export const cloudQueue = defineSource({
  type: 'cloud_queue',
  products: ['AWS SQS'],
  summary: 'Receives the messages of a queue of a cloud provider (SQS).',
  description:
    'Agents that receive from one queue share its messages. The agent looks for credentials in this order: `auth`, the environment, the shared files, a web identity, the container, the instance. It looks them up again before they expire and when the service refuses them. They must allow `sqs:ReceiveMessage` and `sqs:DeleteMessage`; only the health check uses `sqs:GetQueueAttributes`.',
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
        'Region of the queue. If not given, the region of the credentials, else the region in the host of `queue_url`.',
        hostPart,
      ),
    ),
    endpoint: optional(url('Address of the service in place of the host of `queue_url`.')),
    auth: group(
      { strategy: optional(oneOf(['aws'], 'The only strategy; the option can be omitted.')), ...awsAuthMembers },
      'Source of the credentials.',
    ),
    client_concurrency: optional(
      uint(
        'Number of tasks that poll concurrently; more help when many small messages arrive. The number of CPUs if not given.',
        {
          minimum: 1,
          limit: 'pollers',
        },
      ),
    ),
    poll_secs: uint('Seconds that a request waits for messages. The service returns available messages at once.', {
      zero: 'an empty queue answers at once, and the source polls again at once',
      default: 15,
      maximum: 20,
    }),
    visibility_timeout_secs: uint(
      'Seconds for which a received message is hidden from others. If its delivery and deletion take longer, it is received again.',
      { default: 300, maximum: 43_200 },
    ),
    delete_message: bool(
      'Whether messages are deleted. Use `false` only for trials: the queue delivers the messages again and again.',
      {
        default: true,
      },
    ),
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
    const { events } = context
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
    const receiver = new QueueReceiver(options, queue, context)

    return {
      async run() {
        const tasks = options.client_concurrency ?? availableParallelism()
        await Promise.all(Array.from({ length: tasks }, () => receiver.poll()))
      },
      async settle() {
        await receiver.settled()
        await client.close()
        await identity?.nodeClient?.close()
      },
      async healthcheck(signal) {
        await credentials.get()
        await checkQueue(await queue(), options.queue_url, signal)
      },
    }
  },
})

async function checkQueue(queue: Queue, url: string, signal: AbortSignal): Promise<void> {
  try {
    await queue.check(signal)
  } catch (error) {
    // Credentials that may receive and delete do not need the right to read the queue's attributes.
    if (error instanceof Error && /^AccessDenied/.test(error.name)) return
    const name = error instanceof Error ? error.name : 'Error'
    const message = `The queue ${url} cannot be used: ${name}: ${errorText(error)}.`
    throw new PenstockError('PEN_HEALTHCHECK', message, { cause: error })
  }
}

/**
 * The region in the host of a queue's address, which stands beside the name of the service, as in `sqs.eu-west-1.` or
 * `eu-west-1.queue.`.
 */
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
