// What a program written with the npm client relies on.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import * as k8s from '@kubernetes/client-node'

const SECONDS_MAX = 20

const config = new k8s.KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(k8s.CoreV1Api)
const leases = config.makeApiClient(k8s.CoordinationV1Api)
const namespace = `npm-${randomBytes(4).toString('hex')}`

const configMap = (name, data = {}, labels = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels },
  data,
})
const create = (name, data, labels) => core.createNamespacedConfigMap({ namespace, body: configMap(name, data, labels) })
const read = (name) => core.readNamespacedConfigMap({ namespace, name })
const remove = (name) => core.deleteNamespacedConfigMap({ namespace, name })

// A patch in the form that `type` says.
const patch = (name, body, type, more = {}) =>
  core.patchNamespacedConfigMap({ namespace, name, body, ...more }, k8s.setHeaderOptions('Content-Type', type))

// Settles when `happened` is called, or fails when that takes too long.
function event() {
  let happened
  const promise = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('it did not happen in time')), SECONDS_MAX * 1000)
    happened = (value) => {
      clearTimeout(timer)
      resolve(value)
    }
  })
  return { promise, happened }
}

async function refusal(promise) {
  const error = await promise.then(() => assert.fail('it was not refused'), (error) => error)
  const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body
  assert.equal(status.kind, 'Status')
  return [error.code, status.reason]
}

before(() => core.createNamespace({ body: { metadata: { name: namespace } } }))
after(() => core.deleteNamespace({ name: namespace }))

describe('objects', () => {
  test('are created, read, replaced and deleted', async () => {
    const created = await create('a', { k: '1' })
    assert.ok(created.metadata.creationTimestamp instanceof Date)
    created.data.k = '2'
    await core.replaceNamespacedConfigMap({ namespace, name: 'a', body: created })
    assert.deepEqual((await read('a')).data, { k: '2' })
    await remove('a')
    assert.deepEqual(await refusal(read('a')), [404, 'NotFound'])
  })

  test('are refused with reasons', async () => {
    const stale = await create('b')
    await patch('b', { data: { k: '1' } }, k8s.PatchStrategy.MergePatch)
    assert.deepEqual(await refusal(create('b')), [409, 'AlreadyExists'])
    assert.deepEqual(await refusal(core.replaceNamespacedConfigMap({ namespace, name: 'b', body: stale })), [409, 'Conflict'])
    assert.deepEqual(await refusal(create('Not A Name')), [422, 'Invalid'])
    await remove('b')
  })

  test('are listed in pages of one state', async () => {
    const names = ['p0', 'p1', 'p2', 'p3', 'p4']
    for (const name of names) await create(name, {}, { paged: 'yes' })
    const found = []
    let page = {}
    do {
      page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'paged=yes', limit: 2, _continue: page.metadata?._continue })
      found.push(...page.items.map((it) => it.metadata.name))
    } while (page.metadata._continue)
    assert.deepEqual(found, names)
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'paged=yes' })
    const left = await core.listNamespacedConfigMap({ namespace, labelSelector: 'paged=yes' })
    assert.deepEqual(left.items, [])
  })
})

describe('patches', () => {
  test('json, merge and strategic merge', async () => {
    await create('c', { k: '1', gone: '1' })
    let patched = await patch('c', [{ op: 'replace', path: '/data/k', value: '2' }], k8s.PatchStrategy.JsonPatch)
    assert.equal(patched.data.k, '2')
    patched = await patch('c', { data: { gone: null } }, k8s.PatchStrategy.MergePatch)
    assert.deepEqual(patched.data, { k: '2' })
    patched = await patch('c', { metadata: { labels: { x: 'y' } } }, k8s.PatchStrategy.StrategicMergePatch)
    assert.deepEqual(patched.metadata.labels, { x: 'y' })
    await remove('c')
  })

  test('server-side apply tells of conflicts', async () => {
    const apply = (fieldManager, data, force) =>
      patch('d', configMap('d', data), k8s.PatchStrategy.ServerSideApply, { fieldManager, force })
    await apply('first', { shared: '1', mine: '1' })
    assert.deepEqual(await refusal(apply('second', { shared: '2' })), [409, 'Conflict'])
    assert.deepEqual((await apply('second', { shared: '2' }, true)).data, { shared: '2', mine: '1' })
    const owners = (await read('d')).metadata.managedFields.map((it) => `${it.manager} ${it.operation}`)
    assert.deepEqual(owners.sort(), ['first Apply', 'second Apply'])
    await remove('d')
  })
})

describe('watches', () => {
  test('tell of every change from a version on', async () => {
    const { metadata } = await core.listNamespacedConfigMap({ namespace })
    const seen = []
    const { promise, happened } = event()
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const options = { resourceVersion: metadata.resourceVersion, labelSelector: 'seen=yes' }
    const watch = await new k8s.Watch(config).watch(
      path,
      options,
      (type, object) => seen.push(`${type} ${object.metadata.name}`) === 3 && happened(),
      () => {},
    )
    await create('e', {}, { seen: 'yes' })
    await patch('e', { data: { k: '1' } }, k8s.PatchStrategy.MergePatch)
    await remove('e')
    await promise
    watch.abort()
    assert.deepEqual(seen, ['ADDED e', 'MODIFIED e', 'DELETED e'])
  })

  test('an informer keeps a copy', async () => {
    const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'kept=yes' })
    const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, 'kept=yes')
    const events = { add: event(), update: event(), delete: event() }
    for (const [name, { happened }] of Object.entries(events)) informer.on(name, happened)
    await informer.start()
    await create('f', {}, { kept: 'yes' })
    await events.add.promise
    await patch('f', { data: { k: '1' } }, k8s.PatchStrategy.MergePatch)
    await events.update.promise
    assert.deepEqual(informer.get('f', namespace).data, { k: '1' })
    await remove('f')
    await events.delete.promise
    assert.equal(informer.list().length, 0)
    await informer.stop()
  })
})

describe('discovery', () => {
  const objects = k8s.KubernetesObjectApi.makeApiClient(config)

  test('objects of any kind by what they say of themselves', async () => {
    for (const text of [
      `{apiVersion: apps/v1, kind: Deployment, metadata: {name: g, namespace: ${namespace}}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
      `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: g, namespace: ${namespace}}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}`,
      `{apiVersion: v1, kind: Secret, metadata: {name: g, namespace: ${namespace}}, stringData: {password: hunter2}}`,
    ]) {
      const wanted = k8s.loadYaml(text)
      const created = await objects.create(wanted)
      assert.equal(created.kind, wanted.kind)
      const patched = await objects.patch({ ...wanted, metadata: { ...wanted.metadata, labels: { x: 'y' } } })
      assert.equal(patched.metadata.labels.x, 'y')
      await objects.delete(created)
    }
    const listed = await objects.list('v1', 'ConfigMap', namespace)
    assert.equal(listed.kind, 'ConfigMapList')
  })

  test('groups, resources and the version', async () => {
    const groups = await config.makeApiClient(k8s.ApisApi).getAPIVersions()
    assert.ok(groups.groups.some((it) => it.name === 'apps'))
    const resources = await config.makeApiClient(k8s.AppsV1Api).getAPIResources()
    assert.equal(resources.resources.find((it) => it.name === 'deployments').kind, 'Deployment')
    const version = await config.makeApiClient(k8s.VersionApi).getCode()
    assert.match(version.gitVersion, /^v1\./)
  })
})

test('a lease passes from hand to hand', async () => {
  const hold = (holderIdentity) => ({ holderIdentity, leaseDurationSeconds: 5, renewTime: new k8s.V1MicroTime() })
  const lease = await leases.createNamespacedLease({ namespace, body: { metadata: { name: 'l' }, spec: hold('first') } })
  const taken = await leases.replaceNamespacedLease({ namespace, name: 'l', body: { ...lease, spec: hold('second') } })
  assert.equal(taken.spec.holderIdentity, 'second')
  const late = leases.replaceNamespacedLease({ namespace, name: 'l', body: { ...lease, spec: hold('first') } })
  assert.deepEqual(await refusal(late), [409, 'Conflict'])
})
