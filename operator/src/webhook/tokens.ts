// The secret in the paths of the webhooks. Only the API server knows the paths, because it reads its webhook configurations. The
// leader stores the secret in a Secret of its namespace and writes the paths into the configurations. Every replica watches the
// Secret and accepts all of its values. A new secret is registered when every replica can know it, and the old one is valid until no
// API server uses it.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import {
  mutatingWebhookConfigurationType,
  secretType,
  validatingWebhookConfigurationType,
} from '../kube/resource-types.ts'
import { loop } from '../serving/certificates.ts'
import {
  configurationName,
  operatorName,
  webhookPaths,
  webhookTokenSecretName,
} from '../workloads/installation-names.ts'

/** How long to use a secret before the next one is created. */
export const rotateMs = 86_400_000
/**
 * How long replicas have to read a new secret before the API servers use its paths; each replica reads the Secret every 15
 * s.
 */
export const publishMs = 60_000
/** How long API servers have to start using the new paths; each updates its configurations within seconds. */
export const overlapMs = 600_000
const followMs = 15_000

export interface WebhookToken {
  readonly value: string
  /** Milliseconds since 1970, by the clock of the leader that created it. */
  readonly createdAt: number
}

/** The accepted tokens, newest first, and the one for the paths that the API server should use. */
export function renewTokens(
  found: readonly WebhookToken[],
  now: number,
): { readonly tokens: readonly WebhookToken[]; readonly registered: WebhookToken } {
  const [newest] = found
  // After the clock is set back, tokens appear to be from the future; their age is unknown.
  const isDue = newest === undefined || now - newest.createdAt >= rotateMs || newest.createdAt > now + publishMs
  const made = { value: randomBytes(32).toString('base64url'), createdAt: now }
  const all: readonly WebhookToken[] = isDue ? [made, ...found] : found
  const tokens = all.filter((_, index) => {
    const successor = all[index - 1]
    return successor === undefined || now - successor.createdAt < publishMs + overlapMs
  })
  const [first = made, second] = tokens
  const isPublished = now - first.createdAt >= publishMs
  return {
    tokens: tokens.length === found.length && !isDue ? found : tokens,
    registered: isPublished ? first : (second ?? first),
  }
}

/**
 * The path of a webhook with a token, such as `/validate/…`, in lower case as the API server requires. Each webhook has its own secret: if
 * a required webhook is unreachable, the API server shows its address to the author of the request, who must not learn the path of another
 * webhook from it.
 */
export function pathOfWebhook(path: string, token: string): string {
  return `${path}/${createHmac('sha256', token).update(path).digest('hex')}`
}

/** The tokens that this process accepts. */
export class WebhookTokens {
  #tokens: readonly WebhookToken[] = []

  get isKnown(): boolean {
    return this.#tokens.length > 0
  }

  set(tokens: readonly WebhookToken[]): void {
    this.#tokens = tokens
  }

  /** The webhook of a path with a secret; undefined for every other path. Its duration does not depend on the secret. */
  webhookAt(path: string, webhooks: readonly string[]): string | undefined {
    const given = digestOf(path)
    let found: string | undefined
    for (const webhook of webhooks)
      for (const { value } of this.#tokens)
        if (timingSafeEqual(given, digestOf(pathOfWebhook(webhook, value)))) found = webhook
    return found
  }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest()

// --- In the cluster ---

type Secret = KubeObject & { readonly data?: Readonly<Record<string, string>> }

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly {
    readonly name: string
    readonly clientConfig: { readonly service?: { readonly path?: string } }
  }[]
}

/** Watches the Secret on every replica that serves webhooks. */
export function followTokensPart(tokens: WebhookTokens): OperatorPart {
  return {
    name: 'webhook-token',
    leaderOnly: false,
    start: async (context) =>
      loop(context, 'webhook-token', async () => {
        const found = await readTokens(context)
        if (found.length > 0) tokens.set(found)
        return found.length === 0 ? 500 : followMs
      }),
  }
}

/** Creates and renews the tokens, and writes the paths into the webhook configurations. */
export function keepTokensPart(tokens: WebhookTokens): OperatorPart {
  return {
    name: 'webhook-tokens',
    leaderOnly: true,
    start: async (context) =>
      loop(context, 'webhook-tokens', async () => {
        tokens.set(await keepTokens(context, Date.now()))
        return followMs
      }),
  }
}

/** Reads the tokens, renews them if due, and registers the paths; returns the tokens to accept. */
export async function keepTokens(context: OperatorContext, now: number): Promise<readonly WebhookToken[]> {
  const found = await readTokens(context)
  const { tokens, registered } = renewTokens(found, now)
  // Stored before use, because replicas would refuse a path that they cannot know.
  if (tokens !== found) {
    await context.kube.apply<Secret>(secretType, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: webhookTokenSecretName,
        namespace: context.settings.namespace,
        labels: { 'app.kubernetes.io/name': operatorName, 'app.kubernetes.io/managed-by': 'penstock' },
      },
      data: { 'tokens.json': Buffer.from(JSON.stringify(tokens)).toString('base64') },
    })
    context.logger.info({ secret: webhookTokenSecretName }, 'The secret in the paths of the webhooks was renewed.')
  }
  await registerPaths(context, registered.value)
  return tokens
}

async function readTokens(context: OperatorContext): Promise<readonly WebhookToken[]> {
  const secret = await context.kube.get<Secret>(secretType, context.settings.namespace, webhookTokenSecretName)
  const text = Buffer.from(secret?.data?.['tokens.json'] ?? '', 'base64').toString()
  let tokens: unknown
  try {
    tokens = JSON.parse(text)
  } catch {
    return [] // treated as missing; the leader creates a new one
  }
  return Array.isArray(tokens) && tokens.length > 0 && tokens.every(isToken) ? tokens : []
}

function isToken(value: unknown): value is WebhookToken {
  const { value: text, createdAt } = (value ?? {}) as Partial<WebhookToken>
  return typeof text === 'string' && text.length >= 32 && typeof createdAt === 'number'
}

/**
 * Sets `path` of the webhooks with a separate field manager, so that the tool that installed them finds no difference.
 */
async function registerPaths(context: OperatorContext, token: string): Promise<void> {
  const types: ResourceType[] = [validatingWebhookConfigurationType, mutatingWebhookConfigurationType]
  for (const type of types) {
    const found = await context.kube.get<WebhookConfiguration>(type, undefined, configurationName)
    const wanted = (found?.webhooks ?? []).flatMap(({ name, clientConfig }) => {
      const path = Object.hasOwn(webhookPaths, name) ? webhookPaths[name] : undefined
      return path === undefined || clientConfig.service === undefined
        ? []
        : [{ name, is: clientConfig.service.path, path: pathOfWebhook(path, token) }]
    })
    if (wanted.every(({ is, path }) => is === path)) continue
    await context.kube.apply<WebhookConfiguration>(
      type,
      {
        apiVersion: `${type.group}/${type.version}`,
        kind: type.kind,
        metadata: { name: configurationName },
        webhooks: wanted.map(({ name, path }) => ({ name, clientConfig: { service: { path } } })),
      },
      { fieldManager: 'penstock-webhook-paths' },
    )
  }
}
