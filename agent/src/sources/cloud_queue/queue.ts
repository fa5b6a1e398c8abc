// The queue service behind a small interface of our own: the vendor's client over our connections and credentials. The first queue
// opened loads the client. It retries only requests refused for their credentials: the queue redelivers messages by itself.

import type { SQSClientConfig } from '@aws-sdk/client-sqs'
import type { CredentialProvider } from '../../aws/credentials.ts'
import type { HttpClient } from '../../http/client.ts'

export interface QueueMessage {
  /** Identifies the message for its deletion. */
  readonly receipt: string
  readonly body: string
  /** Milliseconds since the epoch. */
  readonly sentMs: number | undefined
}

export interface Queue {
  /** Waits for messages, up to ten; returns an empty list when the poll time is over. */
  receive(signal: AbortSignal): Promise<QueueMessage[]>
  /** Deletes up to ten messages; returns the codes of those that failed. */
  delete(receipts: readonly string[], signal: AbortSignal): Promise<string[]>
  /** Throws if the queue cannot be used. */
  check(signal: AbortSignal): Promise<void>
}

export interface QueueOptions {
  readonly url: string
  readonly region: string
  readonly endpoint: string
  readonly pollSecs: number
  readonly visibilitySecs: number
  readonly client: HttpClient
  readonly credentials: CredentialProvider
}

/** Maximum number of messages in one request. */
const maxMessages = 10
/** Longest answer: ten messages of the maximum size with every character escaped. */
const maxAnswerBytes = 64 << 20
/** How long the vendor's client caches credentials: not at all, because our own cache knows when they expire. */
const askAgainMs = 1000

/** Error names for missing or expired credentials. */
const refusals = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidClientTokenId',
  'InvalidSecurity',
  'SignatureDoesNotMatch',
  'UnrecognizedClientException',
])

type Handler = NonNullable<SQSClientConfig['requestHandler']>

/** A request as the vendor's client makes it. */
interface Request {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

export async function openQueue(options: QueueOptions): Promise<Queue> {
  const sqs = await import('@aws-sdk/client-sqs')
  const { url: QueueUrl, credentials } = options
  let used: { readonly accessKeyId: string } | undefined
  const client = new sqs.SQSClient({
    region: options.region,
    endpoint: options.endpoint,
    maxAttempts: 1,
    requestHandler: handlerOver(options.client),
    customUserAgent: 'Penstock',
    credentials: async () => {
      const { accessKeyId, secretAccessKey, sessionToken } = await credentials.get()
      used = { accessKeyId }
      const token = sessionToken === undefined ? {} : { sessionToken }
      return { accessKeyId, secretAccessKey, ...token, expiration: new Date(Date.now() + askAgainMs) }
    },
  })

  /**
   * Retries once if new credentials may be available in place of the refused ones. A failed deletion is never repeated.
   */
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (used === undefined || !(error instanceof Error) || !refusals.has(error.name)) throw error
      credentials.refused(used)
      if (!credentials.renewable) throw error
      return await work()
    }
  }

  return {
    receive: (signal) =>
      call(async () => {
        const answer = await client.send(
          new sqs.ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: maxMessages,
            WaitTimeSeconds: options.pollSecs,
            VisibilityTimeout: options.visibilitySecs,
            // The older name of the list, for emulators that do not know the new one.
            AttributeNames: ['SentTimestamp' as 'All'],
            MessageSystemAttributeNames: ['SentTimestamp'],
          }),
          { abortSignal: signal },
        )
        const messages: QueueMessage[] = []
        for (const { Body, ReceiptHandle, Attributes } of answer.Messages ?? []) {
          if (Body === undefined || ReceiptHandle === undefined) continue // the message has no body, or cannot be deleted
          const sentMs = Number(Attributes?.SentTimestamp ?? Number.NaN)
          messages.push({ receipt: ReceiptHandle, body: Body, sentMs: Number.isFinite(sentMs) ? sentMs : undefined })
        }
        return messages
      }),
    delete: (receipts, signal) =>
      call(async () => {
        const Entries = receipts.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }))
        const answer = await client.send(new sqs.DeleteMessageBatchCommand({ QueueUrl, Entries }), {
          abortSignal: signal,
        })
        return (answer.Failed ?? []).map(({ Code }) => Code ?? 'unknown')
      }),
    check: (signal) =>
      call(async () => {
        await client.send(new sqs.GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }), {
          abortSignal: signal,
        })
      }),
  }
}

/** The transport of the vendor's client. */
function handlerOver(http: HttpClient): Handler {
  const never = new AbortController().signal
  return {
    async handle(request: Request, options?: { readonly abortSignal?: unknown }) {
      const { method, protocol, hostname, port, path, headers, body } = request
      const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
      const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
      const answer = await http.send(
        { method, url, headers: lower, body: bodyOf(body) },
        (options?.abortSignal as AbortSignal | undefined) ?? never,
        maxAnswerBytes,
      )
      return {
        response: { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: answer.body },
      }
    },
    updateHttpClientConfig() {},
    httpHandlerConfigs: () => ({}),
  }
}

// A view of the bytes, because the vendor's array warns when it is used as text.
function bodyOf(body: unknown): Buffer {
  return body instanceof Uint8Array
    ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    : Buffer.from(String(body ?? ''), 'utf8')
}
